//! Finds the anonymous memory of a process.

use std::ops::Range;

/// Smaller mappings are mostly guard pages and stacks.
const LEAST: u64 = 64 * 1024;

/// The swappable address ranges in `/proc/PID/maps`: private, writable, without a file. Source: proc_pid_maps(5).
pub fn anonymous(text: &str) -> Vec<Range<u64>> {
    let range = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let inode = words.nth(2)?;
        // `[heap]`, `[anon:…]` and unnamed mappings are anonymous; `[vvar]` and `[vdso]` belong to the kernel and are
        // not writable.
        if inode != "0" || !permissions.starts_with("rw") || !permissions.ends_with('p') {
            return None;
        }
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        (range.end.saturating_sub(range.start) >= LEAST).then_some(range)
    };
    text.lines().filter_map(range).collect()
}

/// Whether an entry of `/proc/PID/pagemap` is an anonymous page in memory. Reading a page that is not would swap it in.
/// Bits 63 and 61, Documentation/admin-guide/mm/pagemap.rst.
pub fn is_present_and_anonymous(entry: u64) -> bool {
    entry >> 63 & 1 == 1 && entry >> 61 & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_writable_memory_without_a_file_counts() {
        let text = "\
55d0c8a00000-55d0c8b00000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000200000-7f0000300000 rw-s 00000000 00:01 1024                       /dev/zero (deleted)
7f0000300000-7f0000400000 r--p 00000000 fe:01 77                         /usr/lib/libc.so.6
7f0000400000-7f0000500000 rw-p 00100000 fe:01 77                         /usr/lib/libc.so.6
7f0000500000-7f0000504000 rw-p 00000000 00:00 0
7f0000600000-7f0000700000 ---p 00000000 00:00 0
nonsense
";
        assert_eq!(anonymous(text), [0x55d0_c8a0_0000..0x55d0_c8b0_0000, 0x7f00_0000_0000..0x7f00_0010_0000]);
    }

    #[test]
    fn swapped_and_shared_pages_are_left_alone() {
        assert!(is_present_and_anonymous(1 << 63 | 0x1234));
        assert!(!is_present_and_anonymous(1 << 63 | 1 << 61));
        assert!(!is_present_and_anonymous(1 << 62));
        assert!(!is_present_and_anonymous(0));
    }
}
