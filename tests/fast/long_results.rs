//! `tests/long/summary`: a failed last result ends it with 1, unless that very result is judged.

use std::fs::{self, OpenOptions};
use std::io::Write;

use crate::apart::command_for;
use crate::support::{PYTHON, has_program, repository, skip, texts};

#[test]
fn a_failed_last_result_fails_the_summary() {
    if !has_program(PYTHON) {
        return skip("needs python3");
    }
    let results = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(repository("tests/long/results")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, results.path().join(path.file_name().unwrap())).unwrap();
    }
    let summary = || {
        let output =
            command_for(PYTHON).arg(repository("tests/long/summary")).arg(results.path()).output().unwrap();
        (output.status.code(), texts(&output))
    };
    let add = |file: &str, line: &str| {
        let mut file = OpenOptions::new().append(true).open(results.path().join(file)).unwrap();
        writeln!(file, "{line}").unwrap();
    };
    let now = summary();
    assert_eq!(now.0, Some(0), "{now:?}");
    // A judgement is of one commit.
    let rows = [
        ("counted.tsv", "abc\tsleep\t10\t1", "abc\tsleep\t10\t0"),
        ("fuzz.tsv", "abc\toverlay\t327\t9\t9\tyes", "abc\toverlay\t327\t9\t9\tno"),
        ("soak.tsv", "abc\tsave\t9\t1\t1\t1\t1", "abc\tsave\t9\t0\t1\t1\t1"),
        ("power-cuts.tsv", "abc\tnothing\txfs\t1\t9\t9\t1", "abc\tnothing\txfs\t1\t9\t9\t0"),
    ];
    for (file, red, green) in rows {
        add(file, red);
        let failed = summary();
        assert_eq!(failed.0, Some(1), "{file}: {failed:?}");
        assert_eq!(failed.1.0.matches("FAILED").count(), 1, "{file}: {failed:?}");
        add(file, green);
        assert_eq!(summary().0, Some(0), "{file}");
    }
}
