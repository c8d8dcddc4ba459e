//! Pages that are collected one by one.

use crate::report::Data;
use host::linux::pages::Pages;

use engine::Error;

/// Sampled pages and their description.
#[derive(Debug)]
pub struct Sample {
    /// The pages, none of them same-filled.
    pub pages: Pages,
    /// Origin and statistics of the pages.
    pub data: Data,
}

/// Collects pages one by one. Same-filled pages are left out, because no algorithm compresses them.
pub struct PageBuffer {
    pub(super) pages: Pages,
    pub(super) kept: usize,
    pub(super) same_filled: usize,
}

impl PageBuffer {
    pub fn new(wanted: usize) -> Result<PageBuffer, Error> {
        Ok(PageBuffer { pages: Pages::new(wanted)?, kept: 0, same_filled: 0 })
    }

    pub fn is_full(&self) -> bool {
        self.kept == self.pages.count()
    }

    /// The next free page, to be filled and then [kept](PageBuffer::keep).
    pub fn free(&mut self) -> &mut [u8] {
        self.pages.page_mut(self.kept)
    }

    /// Keeps the page that was filled last.
    pub fn keep(&mut self) {
        if is_same_filled(self.pages.page(self.kept)) {
            self.same_filled += 1;
        } else {
            self.kept += 1;
        }
    }

    pub fn done(mut self, source: &str, description: String) -> Sample {
        self.pages.truncate(self.kept);
        let seen = (self.kept + self.same_filled).max(1);
        let data = Data {
            source: source.to_owned(),
            description,
            pages: self.kept as u64,
            page_size: self.pages.page_size() as u64,
            same_filled_share: self.same_filled as f64 / seen as f64,
            incompressible_share: 0.0,
        };
        Sample { pages: self.pages, data }
    }
}

/// As `page_same_filled` in drivers/block/zram/zram_drv.c: the same word throughout.
pub(super) fn is_same_filled(page: &[u8]) -> bool {
    let (words, _) = page.as_chunks::<8>();
    words.iter().all(|word| *word == words[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_filled_pages_are_counted_and_dropped() {
        let mut page_buffer = PageBuffer::new(4).unwrap();
        page_buffer.free().fill(7);
        page_buffer.keep();
        for byte in 1..=3 {
            let page = page_buffer.free();
            page.fill(0);
            page[4095] = byte;
            page_buffer.keep();
        }
        assert!(!page_buffer.is_full());
        let sample = page_buffer.done("file", String::new());
        assert_eq!((sample.pages.count(), sample.data.same_filled_share), (3, 0.25));
        assert_eq!(sample.pages.page(2)[4095], 3);
    }
}
