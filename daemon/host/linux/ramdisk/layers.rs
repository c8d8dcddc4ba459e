//! What a file system is stored on: block devices, the devices below those, and files on loop devices.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::{Calls, FileSystem};
use logic::ramdisk::paths::Layer;

/// Limit of the depth. More are not used in practice; each is looked up once.
const MOST: usize = 64;

impl Calls {
    /// All layers below a file system, from the top down; `path` is the file or directory that matters. Unknown layers are
    /// left out.
    pub fn layers(&self, path: &str, found: &FileSystem) -> Vec<Layer> {
        let mut layers = vec![Layer::FileSystem { path: path.to_owned(), magic: found.magic }];
        let mut pending: Vec<String> = found.device.iter().cloned().collect();
        while let Some(device) = pending.pop() {
            let layer = Layer::Device(device.clone());
            if layers.contains(&layer) || layers.len() >= MOST {
                continue;
            }
            layers.push(layer);
            let Ok(directory) = fs::canonicalize(format!("/sys/class/block/{device}")) else { continue };
            if directory.join("partition").exists() {
                pending.extend(directory.parent().and_then(name));
            }
            if let Ok(slaves) = fs::read_dir(directory.join("slaves")) {
                pending.extend(slaves.filter_map(|slave| name(&slave.ok()?.path())));
            }
            let Some(file) = backing_file(&directory) else { continue };
            let is_device = fs::metadata(&file).is_ok_and(|meta| meta.file_type().is_block_device());
            if is_device {
                pending.extend(fs::canonicalize(&file).ok().as_deref().and_then(name));
            } else if let Some(below) = self.around(&file) {
                layers.push(Layer::FileSystem { path: file.display().to_string(), magic: below.magic });
                pending.extend(below.device);
            }
        }
        layers
    }

    /// The file system that contains the directory of a file, which may have been unlinked.
    fn around(&self, file: &Path) -> Option<FileSystem> {
        let directory = self.open_directory(file.parent()?).ok()?;
        self.file_system(directory.as_fd()).ok()
    }
}

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// The file of a loop device.
fn backing_file(device: &Path) -> Option<PathBuf> {
    let bytes = fs::read(device.join("loop/backing_file")).ok()?;
    let path = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Some(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b" (deleted)").unwrap_or(path))))
}
