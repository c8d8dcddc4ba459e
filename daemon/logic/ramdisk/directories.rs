//! The directories of a tree by number: each knows its name and the directory that it is in, so that memory does not grow with
//! the depth of a tree.

/// The number of the top.
pub const TOP: usize = 0;

/// Directories. The top is number 0; every other one comes after the one that it is in.
#[derive(Debug, Clone)]
pub struct Directories(Vec<(usize, Box<[u8]>)>);

impl Default for Directories {
    fn default() -> Directories {
        Directories(vec![(TOP, Box::default())])
    }
}

impl Directories {
    /// Adds a directory of this name in another one. Its number.
    pub fn add(&mut self, above: usize, name: &[u8]) -> usize {
        self.0.push((above, name.into()));
        self.0.len() - 1
    }

    /// Forgets the last one.
    pub fn remove_last(&mut self) {
        if self.0.len() > 1 {
            self.0.pop();
        }
    }

    /// The directory in which this one is, and its name there. The top is in itself.
    pub fn above(&self, number: usize) -> (usize, &[u8]) {
        let (above, name) = &self.0[number];
        (*above, name)
    }

    /// Those on the way from a directory that is above this one down to it, without the former.
    pub fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let mut way = Vec::new();
        let mut at = to;
        while at > from {
            way.push(at);
            at = self.above(at).0;
        }
        way.reverse();
        way
    }

    /// The path of a directory below the top.
    pub fn path(&self, number: usize) -> Vec<u8> {
        self.way(TOP, number).into_iter().map(|at| self.above(at).1).collect::<Vec<_>>().join(&b'/')
    }
}

/// The path of one directory after the other, in the order of their numbers, without putting each together anew.
#[derive(Debug, Default)]
pub struct Trail {
    path: Vec<u8>,
    /// Those on the way down, and where the path of each ends.
    ends: Vec<(usize, usize)>,
}

impl Trail {
    /// The path of this directory.
    pub fn path(&mut self, directories: &Directories, number: usize) -> &[u8] {
        let (above, name) = directories.above(number);
        while self.ends.last().is_some_and(|(last, _)| *last != above) {
            self.ends.pop();
        }
        self.path.truncate(self.ends.last().map_or(0, |(_, end)| *end));
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        self.ends.push((number, self.path.len()));
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::directories::*;

    #[test]
    fn a_path_is_put_together_from_names() {
        let mut directories = Directories::default();
        let first = directories.add(TOP, b"a");
        let second = directories.add(TOP, b"b");
        let third = directories.add(first, b"c");
        let fourth = directories.add(third, b"d");
        assert_eq!(directories.path(TOP), b"");
        assert_eq!((directories.path(second), directories.path(fourth)), (b"b".to_vec(), b"a/c/d".to_vec()));
        assert_eq!(directories.way(first, fourth), [third, fourth]);
        assert!(directories.way(fourth, fourth).is_empty());
        let fifth = directories.add(second, b"e");
        let mut trail = Trail::default();
        for (number, path) in [
            (TOP, &b""[..]),
            (first, b"a"),
            (third, b"a/c"),
            (fourth, b"a/c/d"),
            (second, b"b"),
            (fifth, b"b/e"),
        ] {
            assert_eq!(trail.path(&directories, number), path);
        }
    }
}
