//! Public pages that compress like those stored in the swap in use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::measure::{Direction, Spec, pass};
use super::page_buffer::{PageBuffer, Sample};
use super::swap_contents::FilledSwap;
use crate::calibrate::{Class, Target};
use crate::synthetic;
use engine::Error;
use engine::scratch::Scratch;
use fastrand::Rng;
use host::Host;
use host::linux::pages::Pages;
use host::linux::public_files;
use logic::device::algorithm::{Algorithm, parse_comp_algorithm};
use logic::device::attribute::Attribute;

/// Pages per class that are compressed to measure their size.
const PROBE: usize = 512;
/// Pages read from files. More would take too long on a slow disk.
const OF_FILES: usize = 1024;
/// Directory of these files.
const FILES: &str = "/usr/lib";

/// Collects `wanted` pages that compress like those in `swap` with its present algorithm; `None` if that cannot be
/// measured.
pub(super) fn collect<H: Host>(
    host: &mut H,
    configured: &BTreeSet<u32>,
    swap: &FilledSwap,
    target: &Target,
    wanted: usize,
) -> Result<Option<Sample>, Error> {
    let text = host.read_attribute(swap.number, Attribute::CompAlgorithm)?;
    let Some(algorithm) = parse_comp_algorithm(&text).1.and_then(|name| Algorithm::parse(&name).ok()) else {
        return Ok(None);
    };
    // A fixed seed gives the same pages in every run on this machine: two runs differ in its statistics only.
    let mut random = Rng::with_seed(1);
    let mut probes = vec![
        (Class::Sparse, generated(PROBE, synthetic::sparse, &mut random)?),
        (Class::Program, generated(PROBE, synthetic::compressible, &mut random)?),
    ];
    let files = of_files()?;
    // With fewer pages of files, the sample would repeat a few pages.
    if files.count() >= PROBE {
        probes.push((Class::File, files));
    }
    let mut scratch = Scratch::create(host, configured)?;
    let sizes: Result<Vec<(Class, f64)>, Error> = probes
        .iter()
        .map(|(class, pages)| Ok((*class, compressed_size(host, &mut scratch, &algorithm, pages)?)))
        .collect();
    scratch.release(host)?;
    // The same error occurs again when the algorithm is measured, and is reported then.
    let Ok(sizes) = sizes else { return Ok(None) };
    let shares = target.mix(&sizes);
    let mut page_buffer = PageBuffer::new(wanted)?;
    while !page_buffer.is_full() {
        fill(page_buffer.free(), draw(&shares, &mut random), &probes, &mut random);
        page_buffer.keep();
    }
    let ratio = 1.0 / target.size.max(f64::MIN_POSITIVE);
    let description = format!(
        "generated pages and files of {FILES}, mixed for the ratio {ratio:.2} of zram{} with {algorithm}",
        swap.number
    );
    let mut sample = page_buffer.done("calibrated", description);
    sample.data.same_filled_share = swap.same_filled_share();
    Ok(Some(sample))
}

fn generated(count: usize, kind: fn(&mut [u8], &mut Rng), random: &mut Rng) -> Result<Pages, Error> {
    let mut pages = Pages::new(count)?;
    for index in 0..count {
        kind(pages.page_mut(index), random);
    }
    Ok(pages)
}

/// Pages of world-readable files, up to [`OF_FILES`].
fn of_files() -> Result<Pages, Error> {
    let mut data = Pages::new(OF_FILES)?;
    let page = data.page_size();
    let filled = public_files::read_below(Path::new(FILES), data.bytes_mut());
    data.truncate(filled / page);
    let mut page_buffer = PageBuffer::new(data.count())?;
    for index in 0..data.count() {
        page_buffer.free().copy_from_slice(data.page(index));
        page_buffer.keep();
    }
    Ok(page_buffer.done("", String::new()).pages)
}

/// Mean compressed size of these pages, as a fraction of a page.
fn compressed_size<H: Host>(
    host: &mut H,
    scratch: &mut Scratch,
    algorithm: &Algorithm,
    pages: &Pages,
) -> Result<f64, Error> {
    scratch.configure(host, algorithm, pages.bytes().len() as u64)?;
    let node = PathBuf::from(format!("/dev/zram{}", scratch.number()));
    pass(&node, pages, &Spec::new(Direction::Write, 0..pages.count()))?;
    let memory = scratch.memory(host)?;
    if memory.orig_data_size == 0 {
        return Err(Error::failed("no page was compressed"));
    }
    Ok(memory.compr_data_size as f64 / memory.orig_data_size as f64)
}

/// Draws a class with the probability of its share.
fn draw(shares: &[(Class, f64)], random: &mut Rng) -> Class {
    const PARTS: u64 = 1 << 20;
    let mut roll = random.u64(..PARTS) as f64 / PARTS as f64;
    for (class, share) in shares {
        if roll < *share {
            return *class;
        }
        roll -= share;
    }
    shares.last().map_or(Class::Program, |(class, _)| *class)
}

/// Fills a page with contents of a class.
fn fill(page: &mut [u8], class: Class, probes: &[(Class, Pages)], random: &mut Rng) {
    match class {
        Class::Sparse => synthetic::sparse(page, random),
        Class::Program => synthetic::compressible(page, random),
        Class::Noise => synthetic::noise(page, random),
        Class::File => {
            let files = probes.iter().find(|(class, _)| *class == Class::File);
            if let Some((_, files)) = files {
                let index = random.usize(..files.count());
                page.copy_from_slice(files.page(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_drawn_in_proportion_to_their_shares() {
        let mut random = Rng::with_seed(1);
        let shares = [(Class::Sparse, 0.25), (Class::File, 0.0), (Class::Program, 0.75)];
        let drawn: Vec<Class> = (0..10_000).map(|_| draw(&shares, &mut random)).collect();
        let count = |class| drawn.iter().filter(|drawn| **drawn == class).count();
        assert!((2_300..2_700).contains(&count(Class::Sparse)), "{}", count(Class::Sparse));
        assert_eq!((count(Class::File), count(Class::Noise)), (0, 0));
        // Shares that are rounded down end with the last class.
        assert_eq!(draw(&[(Class::File, 0.0), (Class::Noise, 0.0)], &mut random), Class::Noise);
        assert_eq!(draw(&[], &mut random), Class::Program);
    }

    #[test]
    fn pages_of_files_are_copied_from_the_probes() {
        let mut random = Rng::with_seed(1);
        let mut files = Pages::new(2).unwrap();
        files.page_mut(0).fill(7);
        files.page_mut(1).fill(9);
        let probes = [(Class::File, files)];
        let mut page = Pages::new(1).unwrap();
        fill(page.page_mut(0), Class::File, &probes, &mut random);
        assert!(
            [7, 9].contains(&page.page(0)[0]) && page.page(0).iter().all(|byte| *byte == page.page(0)[0])
        );
    }
}
