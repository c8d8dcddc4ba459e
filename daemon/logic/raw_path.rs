//! Paths from the kernel: any bytes except NUL.

use std::borrow::Borrow;
use std::fmt;

use super::text::shown;

/// A path of arbitrary bytes. Compared byte by byte. Printed, what a terminal would hide is escaped, and invalid UTF-8 replaced.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawPath(Vec<u8>);

impl RawPath {
    /// The bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as a value for programs; invalid UTF-8 is replaced.
    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<Vec<u8>> for RawPath {
    fn from(bytes: Vec<u8>) -> RawPath {
        RawPath(bytes)
    }
}

impl From<&str> for RawPath {
    fn from(text: &str) -> RawPath {
        RawPath(text.as_bytes().to_vec())
    }
}

impl Borrow<[u8]> for RawPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq<str> for RawPath {
    fn eq(&self, text: &str) -> bool {
        self.0 == text.as_bytes()
    }
}

impl PartialEq<&str> for RawPath {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

impl PartialEq<String> for RawPath {
    fn eq(&self, text: &String) -> bool {
        self == text.as_str()
    }
}

impl fmt::Display for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.lossy()))
    }
}

impl fmt::Debug for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn paths_are_compared_byte_by_byte() {
        let path = RawPath::from("/srv/a");
        for (text, is_same) in [("/srv/a", true), ("/srv/A", false), ("/srv/a/", false), ("", false)] {
            let owned = text.to_owned();
            assert_eq!([path == *text, path == text, path == owned], [is_same; 3], "{text}");
        }
        let odd = RawPath::from(b"/srv/\xff".to_vec());
        assert!(odd.as_bytes() == b"/srv/\xff" && odd != odd.lossy());
        assert_eq!(BTreeMap::from([(path, 1), (odd, 2)]).get(&b"/srv/\xff"[..]), Some(&2));
    }
}
