//! What a process costs, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// What no file stands behind, its heap and stacks, in KiB.
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

/// The most memory that a process ever had at the same time, in KiB.
pub fn peak(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), "VmHWM:")
}

/// How often each thread has been switched to, by its number.
pub fn switches(pid: u32) -> BTreeMap<u32, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let count = |name: String| {
        // A thread may end between the two looks.
        let text = fs::read_to_string(format!("/proc/{pid}/task/{name}/status")).ok()?;
        Some((
            name.parse().unwrap(),
            field(&text, "voluntary_ctxt_switches:") + field(&text, "nonvoluntary_ctxt_switches:"),
        ))
    };
    threads.filter_map(|thread| count(thread.unwrap().file_name().into_string().unwrap())).collect()
}

/// Whether a process is not switched to at all for this long. It may still have something to do (problems are logged two
/// seconds after a change), and whatever happens on the machine may wake it (a device of any kind is plugged in, somebody
/// mounts something), so one of a few such times has to be quiet; a timer of the process would be in all of them.
pub fn is_idle(pid: u32, time: Duration) -> bool {
    (0..5).any(|_| {
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
