//! Mounts for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{eventually, has_program, skip};

/// A file system that is unmounted when dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// A tmpfs with these options; the directory is created if necessary. Needs root.
    pub fn tmpfs(at: &Path, options: &str) -> Mounted {
        fs::create_dir_all(at).unwrap();
        assert!(mount(&["-t", "tmpfs", "-o", options, "tmpfs"], at));
        Mounted(at.to_owned())
    }

    /// A new file system in a file; `None`, with the reason printed, if that is impossible. Needs root.
    #[track_caller]
    pub fn image(image: &Path, fs_type: &str, bytes: u64, at: &Path) -> Option<Mounted> {
        let mkfs = format!("mkfs.{fs_type}");
        if !has_program(&mkfs) {
            skip(&format!("needs {mkfs}"));
            return None;
        }
        // A new file: a loop device of an earlier one may not be gone yet, and has its contents.
        fs::remove_file(image).ok();
        fs::File::create_new(image).unwrap().set_len(bytes).unwrap();
        assert!(crate::command_for(mkfs).arg("-q").arg(image).status().unwrap().success());
        if !mount(&["-o", "loop", image.to_str().unwrap()], at) {
            skip(&format!("needs a kernel that mounts {fs_type} from a file"));
            return None;
        }
        Some(Mounted(at.to_owned()))
    }

    /// Remounts it with other options.
    pub fn remount(&self, options: &str) {
        // As for the unmount, children of other tests may have files open.
        eventually("it is remounted", || mount(&["-o", &format!("remount,{options}")], &self.0));
    }
}

fn mount(words: &[&str], at: &Path) -> bool {
    Command::new("mount").args(words).arg(at).status().unwrap().success()
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmount = || Command::new("umount").arg(&self.0).status().is_ok_and(|status| status.success());
        if !unmount() && !std::thread::panicking() {
            // A child of another test's thread has its descriptors until it executes its program.
            eventually("it is unmounted", unmount);
        }
    }
}
