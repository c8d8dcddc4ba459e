//! `org.zramd1.RamDisk`: a tmpfs of `[ramdisk.NAME]`.

use std::sync::Arc;

use zbus::interface;

use crate::logic::snapshot::DiskView;
use crate::service::core::Core;

/// One disk.
#[derive(Debug)]
pub struct RamDisk {
    core: Arc<Core>,
    name: String,
}

impl RamDisk {
    pub(in crate::service) fn new(core: Arc<Core>, name: String) -> RamDisk {
        RamDisk { core, name }
    }

    async fn view(&self) -> DiskView {
        self.core.sample().await.disk(&self.name).cloned().unwrap_or_default()
    }
}

/// A RAM disk.
#[interface(name = "org.zramd1.RamDisk", proxy(default_service = "org.zramd1"))]
impl RamDisk {
    /// NAME of `[ramdisk.NAME]`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn name(&self) -> String {
        self.name.clone()
    }

    /// Where it is mounted.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn mount_point(&self) -> String {
        self.view().await.mount_point
    }

    /// What holds it: `tmpfs`.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn backend(&self) -> String {
        self.view().await.fs_type
    }

    /// Its type of file system.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn fs_type(&self) -> String {
        self.view().await.fs_type
    }

    /// Options of the file system, as the kernel shows them.
    #[zbus(property)]
    async fn options(&self) -> String {
        self.view().await.options
    }

    /// Bytes that fit.
    #[zbus(property)]
    async fn size_bytes(&self) -> u64 {
        self.view().await.size_bytes
    }

    /// Bytes in use.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn used_bytes(&self) -> u64 {
        self.view().await.used_bytes
    }

    /// Bytes free.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn free_bytes(&self) -> u64 {
        self.view().await.free_bytes
    }

    /// Files that still fit.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn free_inodes(&self) -> u64 {
        self.view().await.free_inodes
    }
}
