//! A FUSE file system that does not answer (`tests/lab/guest/dead-fuse`).

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::private_bus::{Guarded, PATIENCE, bound, ends_within};
use crate::support::{PYTHON, has_program, may_mount, repository, skip};

/// A process that works on such a file system and has it open by name; both end when this is dropped.
#[derive(Debug)]
pub struct DeadFuse {
    process: Guarded,
    // Removed after the mount.
    directory: tempfile::TempDir,
}

impl DeadFuse {
    /// Mounts it, in a mount namespace of its own; `None`, with the reason printed, if that is impossible.
    #[track_caller]
    pub fn mount() -> Option<DeadFuse> {
        if !may_mount() {
            return None;
        }
        if !(has_program("unshare") && has_program(PYTHON)) || std::fs::metadata("/dev/fuse").is_err() {
            skip("needs unshare, Python and /dev/fuse");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut command = bound("unshare".as_ref());
        command.args(["--mount", "--propagation", "private", PYTHON]);
        command.arg(repository("tests/lab/guest/dead-fuse")).arg(directory.path());
        let mut process = Guarded(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "dead\n");
        Some(DeadFuse { process, directory })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Its root directory, which only programs in its mount namespace see as such.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A program in its mount namespace.
    pub fn inside(&self, program: &str) -> Command {
        let mut command = bound("nsenter".as_ref());
        command.args(["--mount", "--target", &self.pid().to_string(), program]);
        command
    }

    /// The output of a program, which has to end although this file system does not answer.
    #[track_caller]
    pub fn beside(self, mut command: Command) -> (DeadFuse, Output) {
        let child: Child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if !ends_within(&child, PATIENCE) {
            // A process that waits for the file system ends with the server only.
            drop(self);
            panic!("waits for a dead file system: {:?}", child.wait_with_output());
        }
        (self, child.wait_with_output().unwrap())
    }
}
