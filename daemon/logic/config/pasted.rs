//! `compression-algorithm` of zram-generator: `lzo-rle zstd(level=3) (type=idle)`.

use crate::device::algorithm::Algorithm;

/// The kernel has priorities 1 to 3 for secondary algorithms.
const SECONDARIES: usize = 3;

/// Such a list, translated for zramd.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Algorithms {
    /// The first one; `None` leaves the choice to zramd.
    pub primary: Option<String>,
    /// Those for recompression.
    pub secondary: Vec<String>,
    /// `type=idle` or others with which the kernel recompresses.
    pub recompression: Option<String>,
    pub warnings: Vec<String>,
}

/// Parses a list as intended.
pub fn parse(text: &str) -> Algorithms {
    let mut found = Algorithms::default();
    let words = words(text);
    let mut index = 0;
    let mut first = true;
    while let Some(word) = words.get(index) {
        index += 1;
        if word.name.is_empty() {
            let parameters = word.parameters.join(",");
            if parameters.contains("type=") {
                found.recompression = Some(parameters);
            } else {
                let text = format!("zram-generator reads ({parameters}) and never uses it; it was left out");
                found.warnings.push(text);
            }
            continue;
        }
        let mut parameters = word.parameters.clone();
        if word.blank {
            found.warnings.push(format!(
                "zram-generator breaks ({}) at the blank; it was taken as parameters of {}",
                parameters.join(", "),
                word.name
            ));
        }
        // `zstd (level=3)`: parameters after a blank are those of the algorithm before it, if they are known ones.
        if let Some(next) = words.get(index).filter(|next| next.name.is_empty() && next.of_an_algorithm()) {
            index += 1;
            found.warnings.push(format!(
                "zram-generator reads ({}) behind a blank and never uses it; it was taken as parameters of {}",
                next.parameters.join(","),
                word.name
            ));
            parameters.extend(next.parameters.clone());
        }
        let known = known(&word.name, &parameters, &mut found.warnings);
        if first {
            found.primary = known.map(|algorithm| algorithm.to_string());
        } else if let Some(algorithm) = known {
            found.secondary(&algorithm);
        }
        first = false;
    }
    found
}

impl Algorithms {
    fn secondary(&mut self, algorithm: &Algorithm) {
        if self.secondary.len() == SECONDARIES {
            let text = format!(
                "the kernel takes at most {SECONDARIES} algorithms for recompression; {algorithm} was left out"
            );
            return self.warnings.push(text);
        }
        if !algorithm.parameters.is_empty() {
            self.warnings.push(format!(
                "zram-generator fails to set the parameters of a second algorithm, and zramd sets them; write {} to \
                 keep it as it was",
                algorithm.name
            ));
        }
        self.secondary.push(algorithm.to_string());
    }
}

/// `name(a,b)`
#[derive(Debug, PartialEq, Eq)]
struct Word {
    name: String,
    parameters: Vec<String>,
    /// Whether there is a blank between the parentheses.
    blank: bool,
}

impl Word {
    /// Whether the parameters are those of an algorithm, as opposed to those of recompression.
    fn of_an_algorithm(&self) -> bool {
        let key = |word: &String| word.split('=').next().unwrap_or_default().trim().to_owned();
        let keys = ["level", "dict", "dictionary", "deflate.winbits"];
        !self.parameters.is_empty() && self.parameters.iter().all(|word| keys.contains(&key(word).as_str()))
    }
}

/// Splits at blanks outside of parentheses. A word with an unclosed parenthesis ends at the next blank.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let blank = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let open = rest.find('(').filter(|open| *open < blank);
        let next = open.and_then(|open| Some(open + 1 + rest[open + 1..].find(['(', ')'])?));
        let close = next.filter(|at| rest[*at..].starts_with(')'));
        let (word, behind) = rest.split_at(close.map_or(blank, |at| at + 1));
        let (name, inner) = word.split_once('(').unwrap_or((word, ""));
        let inner = inner.strip_suffix(')').unwrap_or(inner);
        words.push(Word {
            name: name.to_owned(),
            parameters: inner
                .split([',', ' ', '\t'])
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
            blank: inner.contains(char::is_whitespace),
        });
        rest = behind.trim_start();
    }
    words
}

/// The algorithm with the parameters that the kernel supports.
fn known(name: &str, parameters: &[String], warnings: &mut Vec<String>) -> Option<Algorithm> {
    let mut algorithm = match Algorithm::parse(name) {
        Ok(algorithm) => algorithm,
        Err(error) => {
            let hint = error.hint.map_or(String::new(), |hint| format!(" ({hint})"));
            warnings.push(format!("{}{hint}; it was left out", error.message));
            return None;
        }
    };
    for word in parameters {
        let (key, value) = word.split_once('=').unwrap_or(("", word));
        let mended = match key {
            "" if value.parse::<i32>().is_ok() => {
                warnings.push(format!("the kernel ignores `{word}`; it was taken as level={word}"));
                format!("level={value}")
            }
            "dictionary" => {
                warnings.push(format!(
                    "the kernel ignores `{word}`, because it calls a dictionary `dict`; dict={value} was taken, which has \
                     to be a file that exists"
                ));
                format!("dict={value}")
            }
            _ => word.clone(),
        };
        match Algorithm::parse(&format!("{name}({mended})")) {
            Ok(one) => {
                for (key, value) in one.parameters {
                    algorithm.parameters.retain(|(known, _)| *known != key);
                    algorithm.parameters.push((key, value));
                }
            }
            Err(error) => warnings.push(format!("{}; it was left out", error.message)),
        }
    }
    Some(algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, primary: Option<&str>, secondary: &[&str], warnings: &[&str]) {
        let found = parse(text);
        assert_eq!(found.primary.as_deref(), primary, "{text}");
        assert_eq!(found.secondary, secondary, "{text}");
        assert_eq!(found.warnings.len(), warnings.len(), "{text}: {:#?}", found.warnings);
        for (warning, part) in found.warnings.iter().zip(warnings) {
            assert!(warning.contains(part), "{warning} does not say {part}");
        }
    }

    #[test]
    fn lists_mean_what_they_mean_to_the_original() {
        check("", None, &[], &[]);
        check("zstd", Some("zstd"), &[], &[]);
        check(" zstd(level=3,dict=/a)  lz4", Some("zstd(level=3, dict=/a)"), &["lz4"], &[]);
        check("zstd(level=3", Some("zstd(level=3)"), &[], &[]);
        check("zstd(level=3 lz4(level=2)", Some("zstd(level=3)"), &["lz4(level=2)"], &["second algorithm"]);
        check("zstd()", Some("zstd"), &[], &[]);
    }

    #[test]
    fn what_the_original_loses_is_named() {
        check(
            "lzo-rle zstd(level=3) (type=idle)",
            Some("lzo-rle"),
            &["zstd(level=3)"],
            &["parameters of a second"],
        );
        assert_eq!(parse("zstd lz4 (type=huge)").recompression.as_deref(), Some("type=huge"));
        check("zstd(level=3, dict=/x)", Some("zstd(level=3, dict=/x)"), &[], &["at the blank"]);
        check("zstd (level=3) lz4", Some("zstd(level=3)"), &["lz4"], &["behind a blank"]);
        check(
            "zstd(dictionary=/d,level=9) (recompargs)",
            Some("zstd(dict=/d, level=9)"),
            &[],
            &["`dict`", "never uses"],
        );
    }

    #[test]
    fn what_the_kernel_does_not_know_is_left_out() {
        check("zst lz4", None, &["lz4"], &["did you mean `zstd`"]);
        check("zstd(levl=3)", Some("zstd"), &[], &["left out"]);
        check("zstd(5)", Some("zstd(level=5)"), &[], &["level=5"]);
        check("zstd(fast)", Some("zstd"), &[], &["left out"]);
        check("zstd(level=99)", Some("zstd"), &[], &["out of range"]);
        check("zstd(level=1,level=2)", Some("zstd(level=2)"), &[], &[]);
        check("lz4 zstd zstd lzo lzo-rle", Some("lz4"), &["zstd", "zstd", "lzo"], &["at most 3"]);
        check(") ( ((", None, &[], &["cannot be the name", "()", "(()"]);
        check("zstd(level=2)lz4", Some("zstd(level=2)"), &["lz4"], &[]);
    }
}
