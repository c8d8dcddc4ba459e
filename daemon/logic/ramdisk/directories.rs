//! The directories of a tree by number. Each has only its name and the number of its parent, so that memory does not
//! grow with the depth of the tree.

/// Number of the root.
pub const TOP: usize = 0;

/// Directories. The root has number 0; every other one has a higher number than its parent.
#[derive(Debug, Clone)]
pub struct Directories(Vec<(usize, Box<[u8]>)>);

impl Default for Directories {
    fn default() -> Directories {
        Directories(vec![(TOP, Box::default())])
    }
}

impl Directories {
    /// Adds a directory with this name and parent; returns its number.
    pub fn add(&mut self, above: usize, name: &[u8]) -> usize {
        self.0.push((above, name.into()));
        self.0.len() - 1
    }

    /// Removes the last one.
    pub fn remove_last(&mut self) {
        if self.0.len() > 1 {
            self.0.pop();
        }
    }

    /// The parent of a directory, and its name there. The root is its own parent.
    pub fn above(&self, number: usize) -> (usize, &[u8]) {
        let (above, name) = &self.0[number];
        (*above, name)
    }

    /// The directories on the path from an ancestor to a descendant, without the ancestor.
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

    /// The path of a directory below the root.
    pub fn path(&self, number: usize) -> Vec<u8> {
        self.way(TOP, number).into_iter().map(|at| self.above(at).1).collect::<Vec<_>>().join(&b'/')
    }
}

/// Computes the paths of directories in the order of their numbers, reusing the previous path.
#[derive(Debug, Default)]
pub struct Trail {
    path: Vec<u8>,
    /// The directories of the present path, and the length of the path of each.
    ends: Vec<(usize, usize)>,
}

impl Trail {
    /// The path of a directory.
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
    fn the_number_of_a_removed_directory_goes_to_the_next() {
        let mut directories = Directories::default();
        directories.remove_last();
        assert_eq!(directories.add(TOP, b"a"), 1, "the root stays");
        directories.remove_last();
        let next = directories.add(TOP, b"b");
        assert_eq!((next, directories.path(next)), (1, b"b".to_vec()));
    }

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
