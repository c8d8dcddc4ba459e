//! Reads parts of a file of the store, and checks them.

use std::os::fd::BorrowedFd;

use host::HostError;
use host::linux::ramdisk::Calls;

use super::format::{self, FOOTER, Footer, Section};
use super::transfer_error::{A_FILE, TransferError, again, is_damage};

fn bad(why: impl Into<String>) -> TransferError {
    TransferError::Bad(why.into())
}

/// Reads these bytes of a file.
pub fn read(
    calls: &Calls,
    file: BorrowedFd<'_>,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, TransferError> {
    let mut bytes = vec![0; length];
    let mut at = 0;
    while at < length {
        match again(|| calls.read_at(file, &mut bytes[at..], offset + at as u64)) {
            Ok(0) => return Err(bad("it ends too early")),
            Ok(count) => at += count,
            Err(errno) if is_damage(errno) => return Err(bad(errno.to_string())),
            Err(errno) => return Err(TransferError::Store(HostError::new(A_FILE, "read", errno))),
        }
    }
    Ok(bytes)
}

/// Reads a part of a file and checks its hash. `most`: more bytes than this are not read.
pub fn section(
    calls: &Calls,
    file: BorrowedFd<'_>,
    section: Section,
    most: usize,
) -> Result<Vec<u8>, TransferError> {
    let length = usize::try_from(section.length).ok().filter(|length| *length <= most);
    let bytes = read(calls, file, section.offset, length.ok_or_else(|| bad("it is too large"))?)?;
    if format::hash(&bytes) == section.hash { Ok(bytes) } else { Err(bad("its hash does not match")) }
}

/// The footer of a file of this size.
pub fn footer(
    calls: &Calls,
    file: BorrowedFd<'_>,
    size: u64,
) -> Result<Result<Footer, format::Unusable>, TransferError> {
    // It is there twice.
    for copy in [1, 2] {
        let Some(offset) = size.checked_sub(copy * FOOTER as u64) else { continue };
        let bytes = match read(calls, file, offset, FOOTER) {
            Err(TransferError::Bad(_)) => continue,
            bytes => bytes?,
        };
        match bytes.as_slice().try_into().map(|bytes| Footer::parse(bytes, size)) {
            Ok(Err(format::Unusable::Broken)) | Err(_) => {}
            Ok(footer) => return Ok(footer),
        }
    }
    Ok(Err(format::Unusable::Broken))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_section_is_not_read_if_it_is_longer_than_its_kind_can_be() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let bytes = std::fs::read(path).unwrap();
        let file = File::open(path).unwrap();
        let whole = Section { offset: 0, length: bytes.len() as u64, hash: format::hash(&bytes) };
        let read = |most| section(&Calls::new(), file.as_fd(), whole, most);
        assert_eq!(read(bytes.len()).unwrap(), bytes);
        assert!(matches!(read(bytes.len() - 1), Err(TransferError::Bad(why)) if why == "it is too large"));
    }
}
