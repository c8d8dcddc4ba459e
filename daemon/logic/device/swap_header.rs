//! The first page of a swap area, as mkswap(8) writes it.

/// Why [`build`] failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The area has fewer than the ten pages that the kernel and mkswap(8) require.
    #[error("the area is smaller than ten pages")]
    TooSmall,
    /// The label has more than [`LABEL_BYTES`] − 1 bytes.
    #[error("the label is longer than 15 bytes")]
    LabelTooLong,
}

/// Size of the label, including its terminating zero.
pub const LABEL_BYTES: usize = 16;
/// Swap areas that every kernel allows: `MAX_SWAPFILES` in include/linux/swap.h is 32 less up to 4 for device memory, 3 for
/// migration, 1 for broken memory and 1 for markers, depending on the configuration of the kernel.
pub const MOST_SWAPS: usize = 23;
/// Minimum number of pages, as in mkswap(8).
const MINIMUM_PAGES: u32 = 10;

/// Builds the header page of a swap area of `size` bytes.
///
/// Layout: `union swap_header` in include/linux/swap.h: 1024 bytes for a boot loader, version, last page, number of bad
/// pages, UUID, label, padding; the magic ends the page.
pub fn build(size: u64, page_size: usize, uuid: [u8; 16], label: &str) -> Result<Vec<u8>, HeaderError> {
    // The field has 32 bits; of a larger area, the kernel uses as many pages as it can.
    let pages = u32::try_from(size / page_size as u64).unwrap_or(u32::MAX);
    if pages < MINIMUM_PAGES {
        return Err(HeaderError::TooSmall);
    }
    if label.len() >= LABEL_BYTES {
        return Err(HeaderError::LabelTooLong);
    }
    let mut page = vec![0; page_size];
    page[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&(pages - 1).to_ne_bytes());
    page[1036..1052].copy_from_slice(&version_4(uuid));
    page[1052..1052 + label.len()].copy_from_slice(label.as_bytes());
    page[page_size - 10..].copy_from_slice(b"SWAPSPACE2");
    Ok(page)
}

/// Turns random bytes into a random UUID (RFC 9562, version 4).
pub fn version_4(mut uuid: [u8; 16]) -> [u8; 16] {
    uuid[6] = (uuid[6] & 0x0F) | 0x40;
    uuid[8] = (uuid[8] & 0x3F) | 0x80;
    uuid
}

#[cfg(test)]
mod tests {
    use crate::device::swap_header::*;

    #[test]
    fn the_fields_are_where_the_kernel_looks_for_them() {
        for page_size in [4096usize, 16384, 65536] {
            let header = build(64 << 20, page_size, [0xFF; 16], "zram0").unwrap();
            assert_eq!(header.len(), page_size);
            assert_eq!(header[1024..1028], 1u32.to_ne_bytes());
            let last = u32::try_from((64 << 20) / page_size - 1).unwrap();
            assert_eq!(header[1028..1032], last.to_ne_bytes());
            assert_eq!(header[1032..1036], [0; 4], "no bad pages");
            assert_eq!(header[1042], 0x4F);
            assert_eq!(header[1044], 0xBF);
            assert_eq!(&header[1052..1058], b"zram0\0");
            assert_eq!(&header[page_size - 10..], b"SWAPSPACE2");
        }
    }

    /// mkswap(8) does so, too.
    #[test]
    fn an_area_with_more_pages_than_the_field_can_count_is_used_in_part() {
        for size in [1 << 44, 1 << 45] {
            let header = build(size, 4096, [0; 16], "").unwrap();
            assert_eq!(header[1028..1032], (u32::MAX - 1).to_ne_bytes(), "{size}");
        }
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_here() {
        assert_eq!(build(40959, 4096, [0; 16], ""), Err(HeaderError::TooSmall));
        assert!(build(40960, 4096, [0; 16], "").is_ok());
        assert_eq!(build(1 << 20, 4096, [0; 16], "sixteen-bytes-xx"), Err(HeaderError::LabelTooLong));
    }
}
