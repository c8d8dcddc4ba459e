//! Training a dictionary on pages. It is made of them, so it is in memory only: a file without a name, which the kernel reads and which
//! ends with this process at the latest.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use crate::engine::Error;
use crate::host::linux::memory_file::MemoryFile;
use crate::host::linux::pages::Pages;
use crate::logic::algorithm::Algorithm;
use crate::logic::benchmark::dictionary::{PARAMETER, SIZE, TRAINED};

/// A dictionary where the kernel can read it.
#[derive(Debug)]
pub struct Trained {
    file: MemoryFile,
    /// Its size.
    pub bytes: u64,
    /// Pages that it was trained with.
    pub pages: u64,
    /// How long that took.
    pub seconds: f64,
}

impl Trained {
    /// `zstd(dict=trained)` as the kernel takes it; others as they are.
    pub fn placed(&self, algorithm: &Algorithm) -> Algorithm {
        let mut placed = algorithm.clone();
        for (key, value) in &mut placed.parameters {
            if key == PARAMETER && value == TRAINED {
                *value = self.file.path();
            }
        }
        placed
    }
}

/// Trains one with the second half of the pages, and leaves the first half to measure it with. Pages that are in both halves are not
/// trained with: it would know them by heart.
pub fn train(pages: &mut Pages) -> Result<Trained, Error> {
    let begun = Instant::now();
    let half = pages.count() / 2;
    let hash = |page: &[u8]| {
        let mut hasher = DefaultHasher::new();
        page.hash(&mut hasher);
        hasher.finish()
    };
    let measured: HashSet<u64> = (0..half).map(|index| hash(pages.page(index))).collect();
    let chosen: Vec<usize> =
        (half..pages.count()).filter(|index| !measured.contains(&hash(pages.page(*index)))).collect();
    let mut samples = Pages::new(chosen.len())?;
    for (to, from) in chosen.iter().enumerate() {
        samples.page_mut(to).copy_from_slice(pages.page(*from));
    }
    pages.truncate(half);
    let mut dictionary = Pages::new(SIZE / pages.page_size())?;
    let sizes = vec![samples.page_size(); chosen.len()];
    let samples_bytes = &samples.bytes()[..sizes.iter().sum()];
    let bytes = zstd::zstd_safe::train_from_buffer(dictionary.bytes_mut(), samples_bytes, &sizes).map_err(
        |code| {
            let why = zstd::zstd_safe::get_error_name(code);
            Error::failed(format!("no dictionary can be trained with {} pages: {why}", chosen.len()))
        },
    )?;
    let file = MemoryFile::new(&dictionary.bytes()[..bytes])?;
    Ok(Trained {
        file,
        bytes: bytes as u64,
        pages: chosen.len() as u64,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::benchmark::random::Random;
    use crate::logic::benchmark::synthetic;

    #[test]
    fn the_kernel_gets_a_path_to_what_was_trained_with_other_pages() {
        let mut random = Random::new(3);
        let mut pages = Pages::new(2048).unwrap();
        for index in 0..2048 {
            synthetic::fill(pages.page_mut(index), &mut random);
        }
        // One page of each half is the same.
        let same = pages.page(5).to_vec();
        pages.page_mut(1500).copy_from_slice(&same);
        let trained = train(&mut pages).unwrap();
        assert_eq!(pages.count(), 1024, "the first half is left");
        assert!(trained.pages < 1024, "{}", trained.pages);
        let placed = trained.placed(&Algorithm::parse("lz4(level=2)").unwrap());
        assert_eq!(placed.to_string(), "lz4(level=2)");
        let with = Algorithm {
            name: "zstd".to_owned(),
            parameters: vec![(PARAMETER.to_owned(), TRAINED.to_owned())],
        };
        let path = trained.placed(&with).parameters[0].1.clone();
        let seen = std::fs::read(&path).unwrap();
        assert_eq!(seen.len() as u64, trained.bytes);
        // zstd's magic number of dictionaries (RFC 8878, section 6).
        assert_eq!(seen[..4], 0xEC30_A437_u32.to_le_bytes());
        drop(trained);
        assert!(std::fs::read(&path).is_err(), "it is gone with its owner");
    }

    #[test]
    fn too_few_pages_are_an_error() {
        let mut pages = Pages::new(2).unwrap();
        let error = train(&mut pages).unwrap_err();
        assert!(error.message.contains("no dictionary can be trained with"), "{error}");
    }
}
