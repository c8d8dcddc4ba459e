//! A verdict for tests, without a benchmark, and the state that the daemon keeps over reboots.

use std::fs;
use std::path::Path;

use engine::verdict;
use host::StateFile;
use host::linux::{LinuxHost, durable};
use logic::device::algorithm::Algorithm;
use logic::verdict::Profile;
use logic::verdict::{FILE, SCHEMA_VERSION, Stored};

/// The verdict, and the write-back budget of maintenance.
const FILES: [&str; 2] = [FILE, StateFile::Budget.path()];

/// The previous files, which are restored when dropped.
pub struct Verdict([Option<Vec<u8>>; 2]);

impl Verdict {
    /// Removes the verdict; [`Verdict::prefer`] sets one.
    pub fn none() -> Verdict {
        let before = FILES.map(|file| fs::read(file).ok());
        fs::remove_file(FILE).ok();
        Verdict(before)
    }

    /// Writes a verdict that is valid on this machine.
    pub fn prefer(algorithm: &str) {
        let stored = Stored {
            schema_version: SCHEMA_VERSION,
            measured_unix: 1,
            key: verdict::key_now(&LinuxHost::new("/")),
            profile: Profile::default(),
            algorithm: Algorithm::parse(algorithm).unwrap(),
            better_runs: 0,
            page_in_ns: 1000,
            provisional: String::new(),
            outdated: String::new(),
            report: serde_json::json!({
                "verdict": { "reason": "", "page_cluster": 0, "swappiness": null }, "waited_share": 0.05,
                "results": [{
                    "algorithm": algorithm, "parameters": {}, "ratio_total": 2.5,
                    "read": { "p50_ns": 3e3, "bytes_per_second": { "value": 2e9 } },
                    "write": { "p50_ns": 4e3, "bytes_per_second": { "value": 1e9 } },
                }],
            }),
        };
        durable::replace(Path::new("/"), FILE, &serde_json::to_string(&stored).unwrap()).unwrap();
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        for (file, before) in FILES.iter().zip(&self.0) {
            match before {
                Some(before) => fs::write(file, before).unwrap(),
                None => drop(fs::remove_file(file)),
            }
        }
    }
}
