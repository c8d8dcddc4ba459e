//! `bench-ramdisk`: tmpfs, compressed memory and disks beside each other.

use std::ffi::OsString;
use std::path::PathBuf;

use engine::benchmark::ramdisk::{self, Options};
use host::linux::LinuxHost;
use lexopt::ValueExt;
use lexopt::prelude::{Long, Value};
use logic::benchmark::ramdisk::WORK;
use logic::device::algorithm::Algorithm;
use logic::exit::ExitStatus;

use super::{configured, frame};

/// What `--help` says.
pub const HELP: &str = "compares tmpfs, compressed memory and disks";

/// Understands its words.
fn options(words: Vec<OsString>) -> Result<Options, lexopt::Error> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("size") => options.size = Some(parser.value()?.parse()?),
            Long("data") => options.data = Some(parser.value()?.into()),
            Long("algorithm") => {
                let parse = |text: &str| Algorithm::parse(text).map_err(|error| error.message);
                options.algorithms.push(parser.value()?.parse_with(parse)?);
            }
            Value(path) => options.paths.push(PathBuf::from(path)),
            word => return Err(word.unexpected()),
        }
    }
    Ok(options)
}

/// Runs the verb.
pub fn run(words: Vec<OsString>) -> Result<ExitStatus, String> {
    let options = options(words).map_err(|error| error.to_string())?;
    Ok(frame::run(WORK, "bench-ramdisk", |reporter| {
        let mut host = LinuxHost::new("/");
        let report = ramdisk::run(&mut host, reporter, &options, &configured::numbers())?;
        reporter.detail(&report)?;
        Ok(format!("{} measurements", report.results.len()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        options(words.iter().map(OsString::from).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_understood() {
        let found = parse(&["--size", "33554432", "--algorithm", "zstd(level=1)", "/a", "--", "-b"]).unwrap();
        assert_eq!((found.size, found.algorithms.len()), (Some(32 << 20), 1));
        assert_eq!(found.paths, [PathBuf::from("/a"), PathBuf::from("-b")]);
        for wrong in [["--size", "many"], ["--algorithm", "zstd(level"], ["--other", "x"]] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }
}
