//! The algorithms that are measured.

use logic::device::algorithm::Algorithm;

/// An algorithm to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub algorithm: Algorithm,
    /// Why it is not eligible as the verdict; empty if it is.
    pub never: String,
}

/// Variants worth measuring. Levels of lz4 above 1 are its acceleration: faster, with a worse ratio.
const VARIANTS: [(&str, &[&str]); 2] =
    [("zstd", &["zstd(level=1)", "zstd(level=-1)"]), ("lz4", &["lz4(level=4)"])];

/// Algorithms that compress too slowly for a primary algorithm in all published measurements; suited for recompression.
const SECONDARY: [&str; 3] = ["lz4hc", "deflate", "842"];

/// All algorithms of this kernel, with levels if it supports them; fast ones first, so that a run that ends early has
/// measured them.
pub fn default(offered: &[String], takes_parameters: bool) -> Vec<Candidate> {
    let rank = |name: &str| match name {
        "lz4" => 0,
        "lzo-rle" => 1,
        "lzo" => 2,
        "zstd" => 3,
        _ if SECONDARY.contains(&name) => 5,
        _ => 4,
    };
    let mut names: Vec<&String> = offered.iter().collect();
    names.sort_by_key(|name| rank(name));
    let mut candidates = Vec::new();
    for name in names {
        candidates.push(candidate(Algorithm::plain(name.as_str())));
        let variants = VARIANTS.iter().filter(|(of, _)| takes_parameters && of == name);
        let variants = variants.flat_map(|(_, texts)| texts.iter());
        candidates.extend(variants.filter_map(|text| Algorithm::parse(text).ok()).map(candidate));
    }
    candidates
}

/// The candidate for an algorithm, with its eligibility.
pub fn candidate(algorithm: Algorithm) -> Candidate {
    let secondary = SECONDARY.contains(&algorithm.name.as_str());
    let never = if secondary { "only as a secondary algorithm: it compresses too slowly" } else { "" };
    Candidate { algorithm, never: never.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(offered: &[&str], takes_parameters: bool) -> Vec<String> {
        let offered: Vec<String> = offered.iter().map(|&name| name.to_owned()).collect();
        default(&offered, takes_parameters).iter().map(|candidate| candidate.algorithm.to_string()).collect()
    }

    #[test]
    fn levels_are_tried_where_the_kernel_takes_them() {
        assert_eq!(names(&["lzo-rle", "lzo", "lz4"], true), ["lz4", "lz4(level=4)", "lzo-rle", "lzo"]);
        assert_eq!(
            names(&["842", "zstd", "new"], true),
            ["zstd", "zstd(level=1)", "zstd(level=-1)", "new", "842"]
        );
        assert_eq!(names(&["zstd"], false), ["zstd"]);
    }

    #[test]
    fn slow_ones_are_measured_and_never_chosen() {
        let slow = |name: &str| !candidate(Algorithm::parse(name).unwrap()).never.is_empty();
        assert!(slow("842") && slow("deflate") && slow("lz4hc(level=9)"));
        assert!(!slow("zstd(level=3)") && !slow("lz4"));
    }
}
