//! Output of all programs: results to standard output, notices to standard error.
//!
//! `println!` and `eprintln!` panic if they cannot write, which ends a program (`panic = "abort"`) in the middle of a change.
//! Here, a result that cannot be written is an error of the command, which [`end`] reports after the change is complete. A
//! notice that cannot be written is dropped.

use std::io::{ErrorKind, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::HostError;
use logic::exit::ExitStatus;
use logic::text::{printable, shown, worded};

/// State of standard output.
enum Output {
    /// Everything was written.
    Open,
    /// The reader of the pipe has closed it.
    Closed,
    /// A result could not be written.
    Failed(HostError),
}

static OUTPUT: Mutex<Output> = Mutex::new(Output::Open);

/// Whether results and notices go to the journal, where they get the fields of other log messages.
static RESULTS_TO_LOG: AtomicBool = AtomicBool::new(false);
static NOTICES_TO_LOG: AtomicBool = AtomicBool::new(false);

/// From now on, lines of results, notices and errors are log messages.
pub(crate) fn hand_to_log(results: bool, notices: bool) {
    RESULTS_TO_LOG.store(results, Ordering::Relaxed);
    NOTICES_TO_LOG.store(notices, Ordering::Relaxed);
}

/// Whether messages that are not read from standard error are lost.
static NEVER_WAITS: AtomicBool = AtomicBool::new(false);
/// How many are lost since the last that was read.
static LOST: Mutex<u64> = Mutex::new(0);
/// Time to wait for a reader. After that, messages are lost at once until one reads again.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Bytes that a pipe takes without waiting when poll(2) says that it can be written (pipe(7)).
const PIPE_BUF: usize = 4096;

/// From now on, a message that standard error does not take in time is lost.
pub(crate) fn never_wait() {
    NEVER_WAITS.store(true, Ordering::Relaxed);
}

/// Whether such messages are lost.
pub(crate) fn never_waits() -> bool {
    is_set(&NEVER_WAITS)
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

fn output() -> MutexGuard<'static, Output> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pager that results go to, if there is one.
static PAGER: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Sends results to a pager, and notices too if they go to a terminal.
pub fn page(pager: ChildStdin) {
    *PAGER.lock().unwrap_or_else(PoisonError::into_inner) = Some(pager);
}

/// Ends the input of the pager.
pub fn end_page() {
    PAGER.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// Standard output. If it was closed at the start, it is `/dev/null`: before `main`, the standard library opens that for each
/// closed descriptor from 0 to 2, so that no other file gets such a number.
#[allow(clippy::disallowed_methods)]
fn stdout() -> Stdout {
    std::io::stdout()
}

/// Standard error, likewise.
#[allow(clippy::disallowed_methods)]
fn stderr() -> Stderr {
    std::io::stderr()
}

/// Whether standard output is a terminal.
pub fn has_terminal() -> bool {
    stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn notes_have_terminal() -> bool {
    stderr().is_terminal()
}

/// Writes and flushes, so that readers of a pipe see it immediately. After a failure nothing more is written.
fn write(text: &str, is_reply: bool) {
    let mut output = output();
    if !matches!(*output, Output::Open) {
        return;
    }
    let mut pager = PAGER.lock().unwrap_or_else(PoisonError::into_inner);
    let written = match &mut *pager {
        Some(pager) => pager.write_all(text.as_bytes()),
        None => {
            let mut stdout = stdout().lock();
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        }
    };
    if let Err(error) = written {
        *output = match error.kind() {
            ErrorKind::BrokenPipe if !is_reply => Output::Closed,
            _ => Output::Failed(HostError::io("standard output", "write", &error)),
        };
    }
}

/// Prints a line of a result.
pub fn line(text: &str) {
    if is_set(&RESULTS_TO_LOG) {
        return tracing::info!("{text}");
    }
    write(&(printable(text) + "\n"), false);
}

/// Prints a result that ends with a line break.
pub fn text(text: &str) {
    write(&printable(text), false);
}

/// Prints a result for other programs, unchanged: JSON, TOML, metrics.
pub fn data(text: &str) {
    write(text, false);
}

/// Prints the reply to the program that started this one ([`process::ask`](crate::linux::process::ask)). It is also an error
/// if that program has gone.
pub fn reply(text: &str) {
    write(text, true);
}

/// Whether results can still be written: false if the reader has gone, or after an error.
pub fn is_open() -> bool {
    matches!(*output(), Output::Open)
}

/// Prints a notice.
pub fn note(text: &str) {
    if is_set(&NOTICES_TO_LOG) {
        return tracing::info!("{}", worded(text));
    }
    message(text);
}

/// Prints a log message.
pub(crate) fn message(text: &str) {
    forward((printable(&worded(text)) + "\n").as_bytes());
}

/// Prints a warning.
pub fn warning(text: &str) {
    if is_set(&NOTICES_TO_LOG) {
        return tracing::warn!("{}", worded(text));
    }
    message(&format!("warning: {text}"));
}

/// Prints an error. What it quotes has no colours and begins no line.
pub fn error(text: &str) {
    let lines: Vec<String> = text.lines().map(shown).collect();
    let text = lines.join("\n  ");
    if is_set(&NOTICES_TO_LOG) {
        return tracing::error!("{}", worded(text));
    }
    message(&format!("error: {text}"));
}

/// Prints a question, which is answered in the same line.
pub fn question(text: &str) {
    forward(printable(&worded(text)).as_bytes());
}

/// Prints the output of another program as a notice, unchanged.
pub fn forward(bytes: &[u8]) {
    let mut pager = PAGER.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *pager {
        Some(pager) if notes_have_terminal() => pager.write_all(bytes).ok(),
        _ if never_waits() => {
            write_or_lose(&mut stderr(), bytes, &mut LOST.lock().unwrap_or_else(PoisonError::into_inner));
            None
        }
        _ => stderr().write_all(bytes).ok(),
    };
}

/// Writes a message to a file that may be a pipe or a socket. One that is not read in time is lost; the next one says how many were.
fn write_or_lose(file: &mut (impl Write + AsFd), bytes: &[u8], lost: &mut u64) {
    let at_once = Timespec::default();
    if *lost > 0 && takes_more(file, &at_once) {
        let said = format!("warning: {lost} messages are lost, because they were not read\n");
        file.write_all(said.as_bytes()).ok();
        *lost = 0;
    }
    let patience = if *lost > 0 { at_once } else { PATIENCE };
    for chunk in bytes.chunks(PIPE_BUF) {
        if !takes_more(file, &patience) {
            *lost += 1;
            return;
        }
        if file.write_all(chunk).is_err() {
            return;
        }
    }
}

/// Whether a file can be written without waiting longer than that; true if its reader has gone, which is an error of the next write.
fn takes_more(file: &impl AsFd, patience: &Timespec) -> bool {
    poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(patience)).is_ok_and(|ready| ready > 0)
}

/// The end of a program: the exit status of its command, or another one if that is success and a result could not be written.
pub fn end(status: ExitStatus) -> ExitCode {
    let status = match &*output() {
        Output::Failed(why) => {
            error(&format!("the result cannot be written: {why}"));
            if status == ExitStatus::Success { ExitStatus::Unwritten } else { status }
        }
        Output::Open | Output::Closed => status,
    };
    ExitCode::from(status.code())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn messages_that_are_not_read_are_lost_and_counted() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut writer = File::from(OwnedFd::from(writer));
        let mut lost = 0;
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        for _ in 0..10_000 {
            write_or_lose(&mut writer, &line, &mut lost);
        }
        assert!((1..10_000).contains(&lost), "{lost}");
        let kept = usize::try_from(10_000 - lost).unwrap() * line.len();
        reader.read_exact(&mut vec![0; kept]).unwrap();
        write_or_lose(&mut writer, b"again\n", &mut lost);
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert!(
            rest.starts_with("warning: ") && rest.ends_with("because they were not read\nagain\n"),
            "{rest}"
        );
        assert_eq!(lost, 0);
    }

    #[test]
    fn messages_without_a_reader_are_no_error() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut lost = 0;
        write_or_lose(&mut File::from(OwnedFd::from(writer)), b"unheard\n", &mut lost);
        assert_eq!(lost, 0);
    }
}
