//! Writes and reads back a new device before it is used.
//!
//! The kernel reports some wrong parameters only when the first page is written (for example a dictionary of the wrong
//! size), and a swap device that fails at that point loses memory of programs.

use super::error::Error;
use host::Host;

/// Writes a compressible, an incompressible and a zero page at the start and at the end, reads them back, discards them.
pub fn run<H: Host>(host: &mut H, number: u32, size: u64) -> Result<(), Error> {
    // A page is at most 64 KiB, far below usize.
    let page = usize::try_from(host.page_size()).unwrap_or(4096);
    let pattern = pattern(page);
    let length = pattern.len() as u64;
    let last = size.saturating_sub(length) / page as u64 * page as u64;
    let offsets = if last >= length { vec![0, last] } else { vec![0] };
    for &offset in &offsets {
        host.write_pages(number, offset, &pattern)?;
    }
    for &offset in &offsets {
        let found = host.read_pages(number, offset, pattern.len())?;
        if let Some(at) = found.iter().zip(&pattern).position(|(found, written)| found != written) {
            let kind = ["compressible", "incompressible", "zero"][at / page];
            return Err(Error::failed(format!(
                "zram{number}: self-test: a {kind} page written at {offset} reads back differently"
            )));
        }
        host.discard(number, offset, length)?;
    }
    Ok(())
}

/// Three pages: text-like, pseudo-random (xorshift with a fixed seed), zero.
fn pattern(page: usize) -> Vec<u8> {
    let words = b"compressed memory is larger than it looks; ";
    let mut bytes: Vec<u8> = words.iter().copied().cycle().take(page).collect();
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    bytes.extend((0..page / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_ne_bytes()
    }));
    bytes.resize(3 * page, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_has_one_page_of_each_kind() {
        let pattern = pattern(4096);
        assert_eq!(pattern.len(), 3 * 4096);
        assert!(pattern[8192..].iter().all(|byte| *byte == 0));
        let mut seen = [false; 256];
        pattern[4096..8192].iter().for_each(|byte| seen[usize::from(*byte)] = true);
        assert!(seen.iter().all(|seen| *seen), "4096 random bytes hit every value");
    }
}
