//! Commands from the configuration, which are ended when they take too long.

use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Signal, test_kill_process_group};

use super::process;
use crate::{HostError, out};

/// Polling interval.
const LOOK: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a program for at most `limit`, and only while `go_on` returns true; `go_on` is called at every poll. What the program prints
/// is printed as notices.
pub fn run(
    words: &[String],
    variables: &[(&str, &OsStr)],
    limit: Duration,
    go_on: impl FnMut() -> bool,
) -> Result<(), HostError> {
    run_to(out::forward, words, variables, limit, go_on)
}

fn run_to(
    mut forward: impl FnMut(&[u8]),
    words: &[String],
    variables: &[(&str, &OsStr)],
    limit: Duration,
    mut go_on: impl FnMut() -> bool,
) -> Result<(), HostError> {
    let Some((program, words)) = words.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(words).envs(variables.iter().copied()).stdin(Stdio::null());
    let failed = |error: std::io::Error| HostError::io(program.as_str(), "run", &error);
    let (mut said, writer) = Said::pipe().map_err(failed)?;
    command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    // A process group of its own, so that its children are ended with it.
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    // Closes our copies of the writing end.
    drop(command);
    let mut go_on = || {
        said.forward(&mut forward);
        go_on()
    };
    let group = process::group(&child);
    let last = Instant::now() + limit;
    if let Some(status) = wait(program, &mut child, last, &mut go_on)? {
        go_on();
        if status.success() {
            return Ok(());
        }
        return Err(HostError::text(program.as_str(), "failed", status.to_string().replacen(": ", " ", 1)));
    }
    let is_late = Instant::now() >= last;
    let deadline = Instant::now() + GRACE;
    process::end_group(group, Signal::TERM);
    // Children may outlive the program, or ignore SIGTERM.
    let is_left = || group.is_some_and(|group| test_kill_process_group(group).is_ok());
    wait(program, &mut child, deadline, &mut || {
        go_on();
        true
    })?;
    while is_left() && Instant::now() < deadline {
        go_on();
        std::thread::sleep(LOOK);
    }
    if is_left() {
        process::end_group(group, Signal::KILL);
    }
    child.wait().map_err(|error| HostError::io(program.as_str(), "wait for", &error))?;
    let message = if is_late {
        format!("it took longer than {} s, and was ended", limit.as_secs())
    } else {
        "it was ended early".to_owned()
    };
    Err(HostError::text(program.as_str(), "failed", message))
}

/// The output of a program. It would fail if it wrote to our standard error and that cannot be
/// written; our standard output carries our own reply.
struct Said(PipeReader);

impl Said {
    fn pipe() -> io::Result<(Said, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        Ok((Said(reader), writer))
    }

    /// Passes on what the pipe holds, 64 KiB at most.
    fn forward(&mut self, forward: &mut impl FnMut(&[u8])) {
        let mut buffer = [0; 4096];
        for _ in 0..16 {
            let Ok(count @ 1..) = self.0.read(&mut buffer) else { return };
            forward(&buffer[..count]);
        }
    }
}

/// Waits for the end of a process; `None` if it is still running at the deadline, or if `go_on` returned false.
fn wait(
    program: &str,
    child: &mut Child,
    deadline: Instant,
    go_on: &mut impl FnMut() -> bool,
) -> Result<Option<std::process::ExitStatus>, HostError> {
    loop {
        let ended = child.try_wait().map_err(|error| HostError::io(program, "wait for", &error))?;
        if ended.is_some() || Instant::now() >= deadline || !go_on() {
            return Ok(ended);
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<(), HostError> {
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        run(&words, &[("ZRAMD_RAMDISK", OsStr::new("logs"))], limit, || true)
    }

    #[test]
    fn the_exit_status_is_returned() {
        assert_eq!(shell("test $ZRAMD_RAMDISK = logs", GRACE), Ok(()));
        let error = shell("exit 3", GRACE).unwrap_err();
        assert_eq!(error.to_string(), "/bin/sh: failed: exit status 3");
        assert!(run(&["/nowhere".to_owned()], &[], GRACE, || true).is_err());
        assert_eq!(run(&[], &[], GRACE, || true), Ok(()));
    }

    /// It prints more than the pipe holds.
    #[test]
    fn output_is_passed_on_until_the_end() {
        let mut passed_on = 0;
        let mut forward = |part: &[u8]| passed_on += part.len();
        let words = ["sh", "-c", "head -c 200000 /dev/zero"].map(str::to_owned);
        assert_eq!(run_to(&mut forward, &words, &[], Duration::from_secs(60), || true), Ok(()));
        assert_eq!(passed_on, 200_000);
        assert!(run_to(|_| {}, &["yes".to_owned()], &[], Duration::from_millis(50), || true).is_err());
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_its_children() {
        let began = Instant::now();
        assert!(shell("sleep 60 & wait", Duration::from_millis(50)).is_err());
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_cancelled_command_is_ended() {
        let words = ["/bin/sleep", "60"].map(str::to_owned);
        assert!(run(&words, &[], Duration::from_secs(600), || false).is_err());
    }

    #[test]
    fn children_that_ignore_sigterm_are_killed_after_their_parent_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("pid");
        // An ignored SIGTERM is inherited by children.
        let stubborn = format!(
            "(trap '' TERM; exec >/dev/null 2>&1; sh -c 'echo $$ >{0}.new; mv {0}.new {0}; exec sleep 600') &",
            note.display()
        );
        let waits = format!("{stubborn} while ! test -e {}; do sleep 0.01; done; wait", note.display());
        let words = ["/bin/sh", "-c", &waits].map(str::to_owned);
        // On a busy machine the start of the child may take longer than the limit.
        let pid = [1, 4, 16, 64].into_iter().find_map(|limit| {
            let error = run(&words, &[], Duration::from_secs(limit), || true).unwrap_err();
            assert!(error.to_string().contains(&format!(" {limit} s")), "{error}");
            std::fs::read_to_string(&note).ok()
        });
        let pid = pid.expect("the child begins");
        let is_alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            // A zombie counts as ended: nothing in the test reaps it.
            stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while is_alive() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        assert!(!is_alive(), "process {pid} outlives its limit");
    }
}
