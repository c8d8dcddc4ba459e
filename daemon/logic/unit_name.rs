//! Names of units, and the paths in them.

/// An absolute path without `.`, double or trailing slash; `None` if it is relative or has `..`.
pub fn normalised(path: &str) -> Option<String> {
    let parts = || path.split('/').filter(|part| !part.is_empty() && *part != ".");
    (path.starts_with('/') && parts().all(|part| part != ".."))
        .then(|| format!("/{}", parts().collect::<Vec<_>>().join("/")))
}

/// Converts a path to a unit name like `systemd-escape --path` (systemd.unit(5), "String escaping for inclusion in unit
/// names").
pub fn escape_path(path: &str) -> String {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return "-".to_owned();
    }
    let mut out = String::new();
    for (index, byte) in path.bytes().enumerate() {
        match byte {
            b'/' => out.push('-'),
            b'.' if index == 0 => out.push_str("\\x2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => out.push(char::from(byte)),
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\x");
                out.push(char::from(HEX[usize::from(other >> 4)]));
                out.push(char::from(HEX[usize::from(other & 15)]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_as_systemd_does_it() {
        for (path, name) in [
            ("/", "-"),
            ("/var/compressed", "var-compressed"),
            ("/foo/bar-baz", r"foo-bar\x2dbaz"),
            ("/.żupan-ci3pły", r"\x2e\xc5\xbcupan\x2dci3p\xc5\x82y"),
            ("/srv/a.b/.c", "srv-a.b-.c"),
            ("/mnt/my disk", r"mnt-my\x20disk"),
            ("/mnt/100%", r"mnt-100\x25"),
            ("/dev/disk/by-partuuid/2d54ffa0-01", r"dev-disk-by\x2dpartuuid-2d54ffa0\x2d01"),
        ] {
            assert_eq!(escape_path(path), name, "{path}");
        }
    }

    #[test]
    fn a_path_has_one_form_and_leads_nowhere_else() {
        for (path, expected) in [
            ("/", Some("/")),
            ("//srv/./a//", Some("/srv/a")),
            ("/srv/..a/...", Some("/srv/..a/...")),
            ("/srv/../etc", None),
            ("/..", None),
            ("srv/a", None),
            ("", None),
        ] {
            assert_eq!(normalised(path).as_deref(), expected, "{path}");
        }
    }
}
