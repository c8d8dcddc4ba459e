//! A process with pages in swap, and usage of swap.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{PYTHON, eventually};

/// Fills pages; for each line of input, moves them to swap or reports whether they are unchanged.
const HOLDER: &str = "
import mmap, random, sys
count = int(sys.argv[1])
pages = mmap.mmap(-1, count * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
wanted = b''.join(random.Random(number).randbytes(512) + bytes(3584) for number in range(64))
for start in range(0, len(pages), len(wanted)):
    pages[start:start + len(wanted)] = wanted
for line in sys.stdin:
    if line == 'out\\n':
        pages.madvise(21)  # MADV_PAGEOUT
        print('out', flush=True)
    else:
        starts = range(0, len(pages), len(wanted))
        print(all(pages[start:start + len(wanted)] == wanted for start in starts), flush=True)
";
const HELD_PAGES: u64 = 1024;

/// The process and its output.
pub struct Holder(Child, BufReader<ChildStdout>);

impl Holder {
    pub fn start() -> Holder {
        let mut command = Command::new(PYTHON);
        command.args(["-c", HOLDER, &HELD_PAGES.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Holder(child, answers)
    }

    /// Moves its pages to the swap on this device.
    pub fn fill(&mut self, device: &str) {
        let half = HELD_PAGES * 4 / 2;
        eventually("half of the pages are in the swap", || {
            self.ask("out") == "out" && used_kib(device) >= half
        });
    }

    pub fn ask(&mut self, what: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{what}").unwrap();
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

fn swap_line(device: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string("/proc/swaps").unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    text.lines().map(words).find(|words| words[0] == format!("/dev/{device}"))
}

/// Size in KiB and priority of the swap on a device.
pub fn swap(device: &str) -> Option<(u64, i32)> {
    swap_line(device).map(|words| (words[2].parse().unwrap(), words[4].parse().unwrap()))
}

fn used_kib(device: &str) -> u64 {
    swap_line(device).map_or(0, |words| words[3].parse().unwrap())
}
