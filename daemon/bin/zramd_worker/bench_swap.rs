//! `bench-swap`: a program under memory pressure on private swap; and its two helpers.

use std::ffi::OsString;
use std::path::Path;

use engine::Error;
use engine::benchmark::pressure::{self, Options};
use engine::benchmark::{guard, load};
use host::linux::{LinuxHost, interrupt};
use lexopt::ValueExt;
use lexopt::prelude::Long;
use logic::benchmark::swap::{LARGEST_CLUSTER, WORK};
use logic::device::algorithm::Algorithm;
use logic::exit::ExitStatus;

use super::{configured, frame};

/// What `--help` says.
pub const HELP: &str = "puts a program under memory pressure";
/// What `--help` says of that program.
pub const LOAD_HELP: &str = "is that program";
/// What `--help` says of the guard.
pub const GUARD_HELP: &str = "puts the machine back should that be killed";

/// Understands its words.
fn options(words: Vec<OsString>) -> Result<Options, lexopt::Error> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("memory") => options.memory = Some(parser.value()?.parse()?),
            Long("data") => options.data = Some(parser.value()?.into()),
            Long("algorithm") => {
                let parse = |text: &str| Algorithm::parse(text).map_err(|error| error.message);
                options.algorithms.push(parser.value()?.parse_with(parse)?);
            }
            Long("page-cluster") => {
                let cluster: u8 = parser.value()?.parse()?;
                if cluster > LARGEST_CLUSTER {
                    return Err(format!("page-cluster is at most {LARGEST_CLUSTER}").into());
                }
                options.page_clusters.push(cluster);
            }
            word => return Err(word.unexpected()),
        }
    }
    Ok(options)
}

/// Runs the verb.
pub fn run(words: Vec<OsString>) -> Result<ExitStatus, String> {
    let options = options(words).map_err(|error| error.to_string())?;
    Ok(frame::run(WORK, "bench-swap", |reporter| {
        let mut host = LinuxHost::new("/");
        let report = pressure::run(&mut host, reporter, &options, &configured::numbers())?;
        reporter.detail(&report)?;
        Ok(format!("{} runs", report.results.len()))
    }))
}

/// The program under pressure: `cgroup.procs` and bytes.
pub fn load(words: Vec<OsString>) -> Result<ExitStatus, String> {
    let [processes, bytes]: [OsString; 2] =
        words.try_into().map_err(|_| "a cgroup and an amount are needed".to_owned())?;
    let bytes = bytes.to_string_lossy().parse().map_err(|_| "the amount is no number".to_owned())?;
    let done = load::run(Path::new(&processes), bytes).and_then(|load| {
        serde_json::to_string(&load).map_err(|error| Error::failed(format!("write JSON: {error}")))
    });
    Ok(told(done.map(|text| println!("{text}"))))
}

/// The guard: the name of the cgroup.
pub fn guard(words: Vec<OsString>) -> Result<ExitStatus, String> {
    let [cgroup]: [OsString; 1] = words.try_into().map_err(|_| "a cgroup is needed".to_owned())?;
    // What ends the one who measures must not end its guard; who measures tells it.
    interrupt::watch();
    Ok(told(guard::run(&cgroup.to_string_lossy())))
}

fn told(done: Result<(), Error>) -> ExitStatus {
    match done {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            eprintln!("zramd-worker: {error}");
            error.exit_status()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        options(words.iter().map(OsString::from).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_understood() {
        let found = parse(&["--memory", "67108864", "--algorithm", "lz4", "--page-cluster", "3"]).unwrap();
        assert_eq!((found.memory, found.page_clusters), (Some(64 << 20), vec![3]));
        for wrong in
            [["--page-cluster", "4"], ["--memory", "x"], ["--algorithm", "zstd(level"], ["word", "word"]]
        {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
        assert!(load(Vec::new()).is_err() && guard(vec!["x".into(), "y".into()]).is_err());
    }
}
