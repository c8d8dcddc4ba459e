//! The verdict of the benchmark as the bus shows it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::lock::lock;
use host::linux::LinuxHost;
use host::linux::store::VERDICT;
use logic::verdict::{Brief, Profile, Stored, Unusable};

/// The verdict for this machine, or why there is none.
pub type Found = Result<Arc<Stored<Brief>>, Unusable>;

/// Device, inode, size and time of change: of a file that is only replaced, never written in place.
type Identity = (u64, u64, u64, i64, i64);

/// The last verdict, which is read again when its file or the profile is another one.
#[derive(Debug)]
pub struct Verdicts {
    root: PathBuf,
    last: Mutex<Option<(Option<Identity>, Profile, Found)>>,
}

impl Verdicts {
    pub fn new(root: &Path) -> Verdicts {
        Verdicts { root: root.to_owned(), last: Mutex::default() }
    }

    /// Reads it again next time: the machine has changed.
    pub fn forget(&self) {
        *lock(&self.last) = None;
    }

    /// The verdict for this profile.
    pub fn found(&self, profile: Profile) -> Found {
        let file = fs::metadata(self.root.join(VERDICT.trim_start_matches('/'))).ok();
        let file = file.map(|file| (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
        let mut last = lock(&self.last);
        if let Some((of, with, found)) = &*last
            && (*of, *with) == (file, profile)
        {
            return found.clone();
        }
        let found = engine::verdict::stored_now(&LinuxHost::new(&self.root), profile).map(Arc::new);
        *last = Some((file, profile, found.clone()));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const TEXT: &str = r#"{"schema_version":2,"measured_unix":7,"profile":"balanced","algorithm":"lz4","better_runs":0,"page_in_ns":1,
        "key":{"kernel":"","cpu":"","cpus":"","algorithms":null,"policy":0},
        "report":{"verdict":{"reason":"","page_cluster":0,"swappiness":null},"results":[]}}"#;

    #[test]
    fn the_file_is_read_again_only_when_it_is_another_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(VERDICT.trim_start_matches('/'));
        let verdicts = Verdicts::new(root.path());
        let measured = |profile| verdicts.found(profile).map(|stored| stored.measured_unix);
        assert_eq!(measured(Profile::Balanced), Err(Unusable::Absent));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, TEXT).unwrap();
        assert_eq!(measured(Profile::Balanced), Ok(7));
        // The same file with another text shows when it is read.
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, TEXT.replace(":7,", ":8,")).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(measured(Profile::Balanced), Ok(7));
        assert_eq!(measured(Profile::Latency), Ok(8));
        let new = path.with_extension("new");
        fs::write(&new, TEXT.replace(":7,", ":9,")).unwrap();
        fs::rename(&new, &path).unwrap();
        assert_eq!(measured(Profile::Latency), Ok(9));
        fs::write(&path, TEXT.replace(":7,", ":10,")).unwrap();
        verdicts.forget();
        assert_eq!(measured(Profile::Latency), Ok(10));
    }
}
