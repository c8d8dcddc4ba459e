//! How large a file may be to be kept. Walking, packing, verifying and loading use these limits and no others, so what is saved
//! can be loaded.

/// Longest path, in bytes. Programs cannot use more than 4096 of them at once; deeper trees are made step by step. Every entry
/// of an archive holds its path, so this is also what bounds the size of an archive.
pub const PATH: usize = 32 << 10;

/// Longest name in a directory (`NAME_MAX`).
pub const NAME: usize = 255;

/// Longest target of a symbolic link (`PATH_MAX`).
pub const TARGET: usize = 4096;

/// Largest file: the kernel's own limit.
pub const SIZE: u64 = i64::MAX.cast_unsigned();

/// Names and values of all attributes of one file, in bytes. Values have at most 64 KiB each.
pub const ATTRIBUTES: usize = 4 << 20;

/// What a reader takes of the extended header of one entry, in bytes.
pub const RECORDS: u64 = 16 << 20;

/// Stretches of data in a file with holes. A writer joins those that lie closest together when there are more.
pub const SEGMENTS: usize = 1 << 16;

/// The smallest hole that is filled to join two stretches, in bytes, doubled as long as there are too many.
pub const HOLE: u64 = 8 << 10;

/// Joining stretches may add this many bytes of zeros to a file, and as many as it has data.
pub const ADDED_ZEROS: u64 = 1 << 20;

/// Manifests, states and other small files, in bytes. What is written has some KiB: names in it are shortened by [`shown`].
pub const SMALL_FILE: usize = 8 << 20;

/// Names of files that a report lists; beyond that they are counted.
pub const NAMED: usize = 10;

/// Longest text of [`shown`], in bytes.
pub const SHOWN: usize = 256;

// A path is in the header twice where a file has holes, an attribute is there with its escaped name and a prefix.
const _: () = assert!((3 * (PATH + TARGET + ATTRIBUTES)) as u64 <= RECORDS);

/// A path for people: printable, and of a long one only its beginning and its end.
pub fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let printable = |part: &[u8]| -> String {
        part.utf8_chunks()
            .flat_map(|chunk| {
                let good = chunk.valid().chars().map(|letter| {
                    if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
                });
                let bad = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
                good.chain(bad)
            })
            .collect()
    };
    let half = SHOWN / 2 - 2;
    if path.len() <= SHOWN {
        let text = printable(path);
        if text.len() <= SHOWN {
            return text;
        }
    }
    let (begin, end) =
        (printable(&path[..path.len().min(half)]), printable(&path[path.len().saturating_sub(half)..]));
    let begin_at = (0..=half.min(begin.len())).rev().find(|at| begin.is_char_boundary(*at)).unwrap_or(0);
    let end_at =
        (end.len().saturating_sub(half)..end.len()).find(|at| end.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...{}", &begin[..begin_at], &end[end_at..])
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::limits::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_is_shown_in_one_line() {
        for (path, text) in [
            (&b""[..], "."),
            (b"a/b c", "a/b c"),
            ("ü".as_bytes(), "ü"),
            (b"\xff\xfe/new\nline\x1b", "\\xff\\xfe/new\\nline\\u{1b}"),
        ] {
            assert_eq!(shown(path), text);
        }
        let long = [b"begin/".as_slice(), &[b'x'; 1000], b"/end"].concat();
        let text = shown(&long);
        assert!(text.starts_with("begin/") && text.ends_with("/end") && text.contains("..."), "{text}");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_short_and_printable(path in proptest::collection::vec(any::<u8>(), 0..600)) {
            let text = shown(&path);
            prop_assert!(text.len() <= SHOWN && !text.chars().any(char::is_control), "{}", text);
        }
    }
}
