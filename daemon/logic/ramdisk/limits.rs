//! Limits of files that can be kept. Walking, packing, verifying and loading use the same limits, so everything that is
//! saved can be loaded.

/// Maximum length of a path in bytes. A system call takes at most 4096, so deeper trees are processed step by step.
pub const PATH: usize = 32 << 10;

/// Maximum length of a name (`NAME_MAX`).
pub const NAME: usize = 255;

/// Maximum length of the target of a symbolic link (`PATH_MAX`).
pub const TARGET: usize = 4096;

/// Maximum size of a file, as in the kernel.
pub const SIZE: u64 = i64::MAX.cast_unsigned();

/// Maximum bytes of names and values of all attributes of a file. A value has at most 64 KiB.
pub const ATTRIBUTES: usize = 4 << 20;

/// Maximum bytes of manifests, states and other small files. Actual ones have some KiB: names are shortened by
/// [`shown`].
pub const SMALL_FILE: usize = 8 << 20;

/// Maximum number of files named in a report; all of them are counted.
pub const NAMED: usize = 10;

/// Maximum length of the result of [`shown`], in bytes.
pub const SHOWN: usize = 256;

/// A path for people: printable, with a long one shortened in the middle.
pub fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let printable = |part: &[u8]| -> String {
        part.utf8_chunks()
            .flat_map(|chunk| {
                let good = chunk.valid().chars().map(crate::text::shown);
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
            (b"\xff\xfe/new\nline\x1b", "\\xff\\xfe/new\\x0aline\\x1b"),
        ] {
            assert_eq!(shown(path), text);
        }
        let long = [b"begin/".as_slice(), &[b'x'; 1000], b"/end"].concat();
        let text = shown(&long);
        assert!(text.starts_with("begin/") && text.ends_with("/end") && text.contains("..."), "{text}");
        assert_eq!(text.len(), 255, "as much as there is room for: {text}");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_short_and_printable(path in proptest::collection::vec(any::<u8>(), 0..600)) {
            let text = shown(&path);
            prop_assert!(text.len() <= SHOWN && !text.chars().any(char::is_control), "{}", text);
        }
    }
}
