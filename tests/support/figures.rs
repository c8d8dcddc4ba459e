//! Memory and wake-ups of a process, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Anonymous memory (heap and stacks) in KiB.
pub fn anonymous(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap(), "Anonymous:")
}

fn field(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Peak of the resident memory in KiB.
pub fn peak(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), "VmHWM:")
}

/// Context switches of each thread, by thread id.
pub fn switches(pid: u32) -> BTreeMap<u32, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let count = |name: String| {
        // A thread may end between readdir and read.
        let text = fs::read_to_string(format!("/proc/{pid}/task/{name}/status")).ok()?;
        Some((
            name.parse().unwrap(),
            field(&text, "voluntary_ctxt_switches:") + field(&text, "nonvoluntary_ctxt_switches:"),
        ))
    };
    threads.filter_map(|thread| count(thread.unwrap().file_name().into_string().unwrap())).collect()
}

/// Whether a process has no context switches in a period of this length. There may be remaining work (problems are logged
/// two seconds after a change) and wake-ups by events (a device is added, a mount is made), so one of several periods has to
/// be quiet; a timer would be in all of them.
pub fn is_idle(pid: u32, time: Duration) -> bool {
    (0..20).any(|_| {
        let before = switches(pid);
        std::thread::sleep(time);
        let after = switches(pid);
        let woken = after != before;
        if woken {
            println!("woken up within {time:?}: {before:?} became {after:?}");
        }
        !woken
    })
}
