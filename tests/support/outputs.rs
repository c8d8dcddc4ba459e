//! Standard output and standard error that cannot be written.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::Command;

/// What both are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// `/dev/full`.
    Full,
    /// A pipe whose reader has gone.
    Gone,
    /// Closed.
    Closed,
}

pub const BROKEN: [Broken; 3] = [Broken::Full, Broken::Gone, Broken::Closed];

/// The exit status for a result that could not be written.
pub const UNWRITTEN: i32 = 74;

impl Broken {
    /// A command with these outputs.
    pub fn command(self, program: &str) -> Command {
        let mut command = match self {
            Broken::Closed => {
                let mut command = crate::command_for("sh");
                command.args(["-c", "exec \"$0\" \"$@\" >&- 2>&-", program]);
                command
            }
            Broken::Full | Broken::Gone => crate::command_for(program),
        };
        self.set(&mut command);
        command
    }

    /// Sets the outputs of a command of [`Broken::command`] again.
    pub fn set(self, command: &mut Command) {
        let output: OwnedFd = match self {
            Broken::Full => File::options().write(true).open("/dev/full").unwrap().into(),
            Broken::Gone => std::io::pipe().unwrap().1.into(),
            Broken::Closed => return,
        };
        command.stdout(output.try_clone().unwrap()).stderr(output);
    }
}
