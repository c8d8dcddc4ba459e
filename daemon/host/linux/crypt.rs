//! A dm-crypt mapping of a block device, with a random key that this program does not keep (include/uapi/linux/dm-ioctl.h;
//! Documentation/admin-guide/device-mapper/dm-crypt.rst).

use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, SeekFrom};

use super::pages::Pages;
use crate::{Errno, HostError};

const CONTROL: &str = "/dev/mapper/control";
/// Numbers of the calls, after `DM_VERSION`.
const DEV_CREATE: u8 = 3;
const DEV_REMOVE: u8 = 4;
const DEV_SUSPEND: u8 = 6;
const TABLE_LOAD: u8 = 9;
/// `DM_SECURE_DATA_FLAG`: the kernel wipes its copy of what we pass.
const SECURE_DATA: u32 = 1 << 15;
/// `struct dm_ioctl`, and where its fields are.
const HEADER: usize = 312;
const AT_SIZE: usize = 12;
const AT_START: usize = 16;
const AT_TARGETS: usize = 20;
const AT_FLAGS: usize = 28;
const AT_NAME: usize = 48;
/// `struct dm_target_spec`, and where its fields are.
const TARGET: usize = 40;
const AT_LENGTH: usize = 8;
const AT_TYPE: usize = 24;
/// The type of keys that only the kernel can read (include/uapi/linux/keyctl.h has the numbers).
const KEY_TYPE: &CStr = c"logon";
/// `KEY_SPEC_PROCESS_KEYRING`.
const PROCESS_KEYRING: libc::c_long = -2;
const KEYCTL_UNLINK: libc::c_long = 9;
/// XTS takes two AES-256 keys: for the data and for the tweak.
const KEY_BYTES: usize = 64;
const SECTOR: u64 = 512;
/// Sector size of the mapping: one page.
const BLOCK: u64 = 4096;

/// A new random key, in memory that is wiped.
struct Key(Pages);

impl Key {
    fn random() -> Result<Key, HostError> {
        let mut key = Key(Pages::new(1)?);
        let bytes = &mut key.0.bytes_mut()[..KEY_BYTES];
        let mut made = 0;
        while made < KEY_BYTES {
            // Blocks until the kernel's generator is seeded, early at boot: a key from before that could be guessed.
            match rustix::rand::getrandom(&mut bytes[made..], rustix::rand::GetRandomFlags::empty()) {
                Ok(count) => made += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(HostError::new("the kernel", "make a random key", errno)),
            }
        }
        Ok(key)
    }

    fn bytes(&self) -> &[u8] {
        &self.0.bytes()[..KEY_BYTES]
    }

    /// Writes it into a table as hexadecimal digits.
    fn write(&self, call: &mut Call) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.bytes() {
            call.append(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// A key in the keyring of this process, of the type `logon`, which no program can read; removed when dropped. Not the session
/// keyring, which a unit may not have and a shell shares with others.
struct KeyringKey {
    serial: libc::c_long,
    description: String,
}

impl KeyringKey {
    /// Adds a key; `None` if this kernel has no keyrings or this process may not use them.
    #[allow(unsafe_code)]
    fn add(name: &str, key: &Key) -> Option<KeyringKey> {
        let description = format!("zramd:{name}");
        let text = CString::new(description.as_str()).ok()?;
        let bytes = key.bytes();
        // SAFETY: the kernel reads two strings and the bytes, all of which outlive the call.
        let serial = unsafe {
            libc::syscall(
                libc::SYS_add_key,
                KEY_TYPE.as_ptr(),
                text.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                PROCESS_KEYRING,
            )
        };
        (serial > 0).then_some(KeyringKey { serial, description })
    }

    /// Writes its name into a table, in the form of Linux 4.10.
    fn write(&self, call: &mut Call) {
        call.append(format!(":{KEY_BYTES}:logon:{}", self.description).as_bytes());
    }
}

impl Drop for KeyringKey {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: keyctl(2) takes two numbers here. The kernel wipes a key that is in no keyring.
        unsafe {
            libc::syscall(libc::SYS_keyctl, KEYCTL_UNLINK, self.serial, PROCESS_KEYRING);
        }
    }
}

/// One device mapper call, in memory that is wiped.
struct Call {
    pages: Pages,
    used: usize,
}

impl Call {
    fn about(name: &str) -> Result<Call, HostError> {
        let mut call = Call { pages: Pages::new(1)?, used: HEADER };
        // The kernel accepts any 4.x.
        call.number(0, 4);
        call.number(AT_START, u32::try_from(HEADER).unwrap_or(u32::MAX));
        call.number(AT_FLAGS, SECURE_DATA);
        call.pages.bytes_mut()[AT_NAME..AT_NAME + name.len()].copy_from_slice(name.as_bytes());
        Ok(call)
    }

    fn number(&mut self, at: usize, value: u32) {
        self.pages.bytes_mut()[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn append(&mut self, text: &[u8]) {
        let end = self.used + text.len();
        self.pages.bytes_mut()[self.used..end].copy_from_slice(text);
        self.used = end;
    }

    /// Writes the table: the whole device `(major, minor)`, encrypted with the key that this writes.
    fn crypt_table(&mut self, sectors: u64, (major, minor): (u32, u32), key: impl FnOnce(&mut Call)) {
        let target = self.used;
        self.used += TARGET;
        self.number(AT_TARGETS, 1);
        let bytes = self.pages.bytes_mut();
        bytes[target + AT_LENGTH..target + AT_LENGTH + 8].copy_from_slice(&sectors.to_ne_bytes());
        bytes[target + AT_TYPE..target + AT_TYPE + 5].copy_from_slice(b"crypt");
        self.append(b"aes-xts-plain64 ");
        key(self);
        // Pages are encrypted where they are sent, since Linux 5.9: handing each to another thread takes longer than the disk
        // while all CPUs are busy, and that thread would not have the priority of ours.
        self.append(
            format!(" 0 {major}:{minor} 0 3 sector_size:{BLOCK} iv_large_sectors no_write_workqueue\0")
                .as_bytes(),
        );
    }

    #[allow(unsafe_code)]
    fn make(
        mut self,
        control: &OwnedFd,
        number: u8,
        what: &'static str,
        object: &str,
    ) -> Result<(), HostError> {
        self.number(AT_SIZE, u32::try_from(self.pages.page_size()).unwrap_or(u32::MAX));
        let opcode = rustix::ioctl::opcode::read_write::<[u8; HEADER]>(0xfd, number);
        let at = self.pages.bytes_mut().as_mut_ptr();
        // SAFETY: the kernel reads and writes at most the length that the call states, which is that of the memory.
        let answer = unsafe { libc::ioctl(control.as_fd().as_raw_fd(), opcode as _, at) };
        if answer == 0 {
            return Ok(());
        }
        Err(HostError::io(object, what, &std::io::Error::last_os_error()))
    }
}

fn control(root: &Path) -> Result<OwnedFd, HostError> {
    let path = root.join(CONTROL.trim_start_matches('/'));
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::NOENT | rustix::io::Errno::NODEV | rustix::io::Errno::NXIO => {
            HostError::text(CONTROL, "open", "this kernel has no device mapper, so nothing can be encrypted")
        }
        errno => HostError::new(CONTROL, "open", errno),
    })
}

/// Number and length in sectors of a block device.
fn store_of(root: &Path, store: &str) -> Result<((u32, u32), u64), HostError> {
    let failed =
        |operation: &'static str| move |errno: rustix::io::Errno| HostError::new(store, operation, errno);
    let path = root.join(store.trim_start_matches('/'));
    let device =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed("open"))?;
    let stat = rustix::fs::fstat(&device).map_err(failed("look at"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        return Err(HostError::new(store, "map", Errno::NOTBLK));
    }
    let bytes = rustix::fs::seek(&device, SeekFrom::End(0)).map_err(failed("measure"))?;
    Ok(((rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)), bytes / BLOCK * BLOCK / SECTOR))
}

/// Maps `store` as `name`.
pub fn open(root: &Path, name: &str, store: &str) -> Result<(), HostError> {
    let (device, sectors) = store_of(root, store)?;
    let key = Key::random()?;
    let control = control(root)?;
    Call::about(name)?.make(&control, DEV_CREATE, "create the mapping", name)?;
    let load = |write: &dyn Fn(&mut Call)| {
        let mut table = Call::about(name)?;
        table.crypt_table(sectors, device, write);
        table.make(&control, TABLE_LOAD, "encrypt with dm-crypt (aes-xts-plain64)", store)
    };
    // dm-crypt copies the key, which leaves the keyring here. A table with the key itself can be read by root.
    let loaded = match KeyringKey::add(name, &key) {
        Some(named) => match load(&|call| named.write(call)) {
            // dm-crypt before Linux 4.10.
            Err(error) if error.is(Errno::INVAL) => load(&|call| key.write(call)),
            loaded => loaded,
        },
        None => load(&|call| key.write(call)),
    };
    let active =
        loaded.and_then(|()| Call::about(name)?.make(&control, DEV_SUSPEND, "activate the mapping", name));
    if active.is_err() {
        // The first error is the one to report.
        close(root, name).ok();
    }
    active
}

/// Removes the mapping, and with it the kernel's copy of the key.
pub fn close(root: &Path, name: &str) -> Result<(), HostError> {
    if find(root, name)?.is_none() && !root.join("dev/mapper/control").exists() {
        return Ok(());
    }
    match Call::about(name)?.make(&control(root)?, DEV_REMOVE, "remove the mapping", name) {
        Err(error) if error.is(Errno::NXIO) => Ok(()),
        other => other,
    }
}

/// The device node of the mapping.
pub fn find(root: &Path, name: &str) -> Result<Option<String>, HostError> {
    let directory = root.join("sys/block");
    let entries = fs::read_dir(&directory).map_err(|error| HostError::io("/sys/block", "list", &error))?;
    for entry in entries.filter_map(Result::ok) {
        let found = fs::read_to_string(entry.path().join("dm/name"));
        if found.is_ok_and(|found| found.trim() == name) {
            return Ok(entry.file_name().to_str().map(|node| format!("/dev/{node}")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(call: &Call) -> String {
        let text = &call.pages.bytes()[HEADER + TARGET..call.used - 1];
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[test]
    fn a_table_has_the_form_that_the_kernel_wants_and_each_key_is_another() {
        let table = || {
            let (mut call, key) = (Call::about("zramd-zram7").unwrap(), Key::random().unwrap());
            call.crypt_table(2048, (7, 3), |call| key.write(call));
            call
        };
        let (one, other) = (table(), table());
        let bytes = one.pages.bytes();
        assert_eq!(bytes[AT_NAME..AT_NAME + 12], *b"zramd-zram7\0");
        assert_eq!(bytes[HEADER + AT_LENGTH..HEADER + AT_LENGTH + 8], 2048_u64.to_ne_bytes());
        assert_eq!(bytes[HEADER + AT_TYPE..HEADER + AT_TYPE + 6], *b"crypt\0");
        let words: Vec<String> = text(&one).split(' ').map(str::to_owned).collect();
        assert_eq!(words[0], "aes-xts-plain64");
        assert_eq!(words[1].len(), 2 * KEY_BYTES);
        assert!(words[1].chars().all(|digit| digit.is_ascii_hexdigit()));
        assert_eq!(words[2..].join(" "), "0 7:3 0 3 sector_size:4096 iv_large_sectors no_write_workqueue");
        assert_ne!(text(&one).split(' ').nth(1), text(&other).split(' ').nth(1));
        assert!(one.used < one.pages.page_size());
    }

    /// `KEYCTL_SEARCH` for a logon key in the keyring of this process: its serial number, or -1.
    #[allow(unsafe_code)]
    fn search(description: &str) -> libc::c_long {
        let description = CString::new(description).unwrap();
        // SAFETY: the kernel reads two strings that outlive the call.
        unsafe {
            libc::syscall(libc::SYS_keyctl, 10, PROCESS_KEYRING, KEY_TYPE.as_ptr(), description.as_ptr(), 0)
        }
    }

    #[test]
    fn a_table_names_a_key_that_is_in_the_keyring_only_meanwhile() {
        let key = Key::random().unwrap();
        let Some(named) = KeyringKey::add("zramd-zram7", &key) else {
            assert_ne!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL), "wrong arguments");
            return;
        };
        assert_eq!(search("zramd:zramd-zram7"), named.serial);
        let mut call = Call::about("zramd-zram7").unwrap();
        call.crypt_table(2048, (7, 3), |call| named.write(call));
        assert_eq!(text(&call).split(' ').nth(1), Some(":64:logon:zramd:zramd-zram7"));
        drop(named);
        assert_eq!(search("zramd:zramd-zram7"), -1);
    }
}
