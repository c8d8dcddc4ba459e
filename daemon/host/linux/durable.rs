//! Files that survive a power cut, below `/var/lib/zramd`.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::files;
use crate::HostError;

/// Replaces a file atomically and syncs it and its directory: after a power cut either the old or the new text is there.
pub fn replace(root: &Path, path: &str, text: &str) -> Result<(), HostError> {
    let full = files::below(root, path);
    let failed =
        |operation: &'static str| move |error: std::io::Error| HostError::io(path, operation, &error);
    let directory = full.parent().unwrap_or(root);
    fs::create_dir_all(directory).map_err(failed("create the directory of"))?;
    let name = full.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let partial = directory.join(format!(".{name}.new"));
    let mut file = fs::File::create(&partial).map_err(failed("write"))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write"))?;
    fs::rename(&partial, &full).map_err(failed("replace"))?;
    fs::File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed("write the directory of"))
}

/// Removes a file; true if it existed.
pub fn remove(root: &Path, path: &str) -> Result<bool, HostError> {
    match fs::remove_file(files::below(root, path)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(HostError::io(path, "remove", &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_directory_and_removed() {
        let root = tempfile::tempdir().unwrap();
        replace(root.path(), "/var/lib/zramd/x.json", "1").unwrap();
        replace(root.path(), "/var/lib/zramd/x.json", "2").unwrap();
        assert_eq!(fs::read_to_string(root.path().join("var/lib/zramd/x.json")).unwrap(), "2");
        assert_eq!(fs::read_dir(root.path().join("var/lib/zramd")).unwrap().count(), 1);
        assert_eq!(remove(root.path(), "/var/lib/zramd/x.json"), Ok(true));
        assert_eq!(remove(root.path(), "/var/lib/zramd/x.json"), Ok(false));
    }
}
