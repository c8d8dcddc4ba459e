//! Compression algorithms: names and parameters as in the kernel.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::nearest;

/// An algorithm with its parameters; as text in files and on the bus, such as `zstd(level=3)`.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst, "Select compression algorithm" and "Set compression algorithm
/// parameters".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Algorithm {
    /// Kernel spelling, for example `lzo-rle`.
    pub name: String,
    /// Keys and values for `algorithm_params`, in the order written: `level`, `dict`, `deflate.winbits`.
    pub parameters: Vec<(String, String)>,
}

/// Why a text is not an algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmError {
    /// Description.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// Known levels of an algorithm, and whether it supports a dictionary. Unknown algorithms are left to the kernel.
struct Known {
    name: &'static str,
    levels: Option<(i32, i32)>,
    dictionary: bool,
    /// Last part of the kernel's option.
    option: &'static str,
}

/// Levels accepted by the back-ends in drivers/block/zram.
const KNOWN: [Known; 7] = [
    Known { name: "lzo-rle", levels: None, dictionary: false, option: "LZO" },
    Known { name: "lzo", levels: None, dictionary: false, option: "LZO" },
    Known { name: "lz4", levels: Some((1, i32::MAX)), dictionary: true, option: "LZ4" },
    Known { name: "lz4hc", levels: Some((1, 16)), dictionary: true, option: "LZ4HC" },
    Known { name: "zstd", levels: Some((-131_072, 22)), dictionary: true, option: "ZSTD" },
    Known { name: "deflate", levels: Some((-1, 9)), dictionary: false, option: "DEFLATE" },
    Known { name: "842", levels: None, dictionary: false, option: "842" },
];

/// The name of an algorithm, if zramd knows it.
pub fn known_name(name: &str) -> Option<&'static str> {
    KNOWN.iter().map(|known| known.name).find(|known| *known == name)
}

/// A name with the option that a kernel needs for it, for messages. Since Linux 6.12, zram has options of its own instead of those of the
/// kernel's crypto API.
pub fn with_option(name: &str, own: bool) -> String {
    let prefix = if own { "ZRAM_BACKEND" } else { "CRYPTO" };
    match KNOWN.iter().find(|known| known.name == name) {
        Some(Known { option, .. }) => format!("{name} (CONFIG_{prefix}_{option})"),
        None => name.to_owned(),
    }
}

const KEYS: [&str; 3] = ["level", "dict", "deflate.winbits"];

fn error(message: impl Into<String>, hint: impl Into<String>) -> AlgorithmError {
    AlgorithmError { message: message.into(), hint: Some(hint.into()) }
}

impl Algorithm {
    /// An algorithm without parameters.
    pub fn plain(name: impl Into<String>) -> Algorithm {
        Algorithm { name: name.into(), parameters: Vec::new() }
    }

    /// Parses `zstd`, `zstd(level=3)`, `lz4(level=3, dict=/etc/zramd/lz4.dict)`.
    pub fn parse(text: &str) -> Result<Algorithm, AlgorithmError> {
        let text = text.trim();
        let (name, words) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(words) => (name.trim_end(), words),
                None => {
                    return Err(error(format!("`{text}` has no closing )"), format!("write \"{text})\"")));
                }
            },
        };
        check_name(name)?;
        let mut parameters: Vec<(String, String)> = Vec::new();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let Some((key, value)) = word.split_once('=') else {
                let hint = format!("write for example {name}(level={word})");
                return Err(error(format!("`{word}` is no parameter"), hint));
            };
            let (key, value) = (key.trim(), value.trim());
            check_parameter(name, key, value)?;
            if parameters.iter().any(|(known, _)| known == key) {
                return Err(error(format!("`{key}` is given twice"), "keep one of them"));
            }
            parameters.push((key.to_owned(), value.to_owned()));
        }
        Ok(Algorithm { name: name.to_owned(), parameters })
    }
}

impl TryFrom<String> for Algorithm {
    type Error = String;

    fn try_from(text: String) -> Result<Algorithm, String> {
        Algorithm::parse(&text).map_err(|error| error.message)
    }
}

impl From<Algorithm> for String {
    fn from(algorithm: Algorithm) -> String {
        algorithm.to_string()
    }
}

/// An algorithm as two fields, for serde's `with`: its name, and its parameters as an object.
pub mod apart {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The two fields.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct Fields {
        /// Kernel spelling.
        algorithm: String,
        /// Its parameters, for example `level`.
        parameters: BTreeMap<String, String>,
    }

    /// Writes `algorithm` and `parameters`.
    pub fn serialize<S: Serializer>(algorithm: &super::Algorithm, serializer: S) -> Result<S::Ok, S::Error> {
        let parameters = algorithm.parameters.iter().cloned().collect();
        Fields { algorithm: algorithm.name.clone(), parameters }.serialize(serializer)
    }

    /// Reads `algorithm` and `parameters`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<super::Algorithm, D::Error> {
        let Fields { algorithm, parameters } = Fields::deserialize(deserializer)?;
        Ok(super::Algorithm { name: algorithm, parameters: parameters.into_iter().collect() })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parameters.is_empty() {
            return f.pad(&self.name);
        }
        let words: Vec<String> =
            self.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.pad(&format!("{}({})", self.name, words.join(", ")))
    }
}

/// Checks that a name has only characters that the kernel uses, and is not a typo of a known name.
fn check_name(name: &str) -> Result<(), AlgorithmError> {
    let known = || KNOWN.iter().map(|known| known.name);
    if known().any(|other| other == name) {
        return Ok(());
    }
    if let Some(meant) = nearest(name, known()) {
        return Err(error(format!("there is no algorithm `{name}`"), format!("did you mean `{meant}`?")));
    }
    let plain =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if plain {
        return Ok(());
    }
    let names: Vec<&str> = known().collect();
    Err(error(
        format!("`{name}` cannot be the name of an algorithm"),
        format!("kernels have {}", names.join(", ")),
    ))
}

fn check_parameter(name: &str, key: &str, value: &str) -> Result<(), AlgorithmError> {
    let known = KNOWN.iter().find(|known| known.name == name);
    match key {
        "level" => {
            let Some(known) = known else { return number(key, value, i32::MIN, i32::MAX) };
            let Some((least, most)) = known.levels else {
                return Err(error(format!("{name} takes no level"), format!("write just \"{name}\"")));
            };
            number(key, value, least, most)
        }
        "dict" => {
            if known.is_some_and(|known| !known.dictionary) {
                return Err(error(format!("{name} takes no dictionary"), "leave dict out"));
            }
            // The kernel takes all parameters as one line of words.
            if !value.starts_with('/') || value.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(error(
                    format!("`{value}` is not an absolute path without blanks"),
                    "begin it with a slash",
                ));
            }
            Ok(())
        }
        "deflate.winbits" if name != "deflate" => {
            Err(error(format!("{name} has no parameter `{key}`"), "leave it out: only deflate has it"))
        }
        "deflate.winbits" => match value.parse::<i32>() {
            Ok(bits) if (-15..=-9).contains(&bits) || (9..=15).contains(&bits) => Ok(()),
            _ => Err(error(format!("deflate.winbits cannot be {value}"), "write -15 to -9, or 9 to 15")),
        },
        _ => {
            let meant = if key == "dictionary" { Some("dict") } else { nearest(key, KEYS.into_iter()) };
            let hint = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("parameters are {}", KEYS.join(", ")),
            };
            Err(error(format!("{name} has no parameter `{key}`"), hint))
        }
    }
}

fn number(key: &str, value: &str, least: i32, most: i32) -> Result<(), AlgorithmError> {
    match value.parse::<i32>() {
        Ok(number) if (least..=most).contains(&number) => Ok(()),
        Ok(number) => {
            let range =
                if most == i32::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
            Err(error(format!("{key} {number} is out of range"), format!("write {range}")))
        }
        Err(_) => Err(error(format!("`{value}` is no {key}"), format!("write a whole number: {key}=3"))),
    }
}

/// The names in `comp_algorithm`, and the selected one in brackets.
pub fn parse_comp_algorithm(text: &str) -> (Vec<String>, Option<String>) {
    let mut selected = None;
    let names = text
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| !word.is_empty())
        .map(|word| match word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
            Some(name) => {
                selected = Some(name.to_owned());
                name.to_owned()
            }
            None => word.to_owned(),
        })
        .collect();
    (names, selected)
}

/// Priority and name of each secondary algorithm in `recomp_algorithm`, one per line: `#1: lzo [zstd] lz4`.
pub fn parse_recomp_algorithm(text: &str) -> Vec<(u8, String)> {
    // Linux 7.2 leaves NUL bytes between the lines.
    text.split(['\n', '\0'])
        .filter_map(|line| {
            let (priority, names) = line.trim().strip_prefix('#')?.split_once(':')?;
            let (_, selected) = parse_comp_algorithm(names);
            Some((priority.trim().parse().ok()?, selected?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::device::algorithm::*;

    #[test]
    fn algorithms_are_understood_and_printed_back() {
        for (text, canonical) in [
            ("zstd", "zstd"),
            (" zstd( level = 3 ) ", "zstd(level=3)"),
            ("zstd(level=-5,dict=/etc/d)", "zstd(level=-5, dict=/etc/d)"),
            ("lz4(level=3)", "lz4(level=3)"),
            ("deflate(level=-1, deflate.winbits=-11)", "deflate(level=-1, deflate.winbits=-11)"),
            ("842", "842"),
            ("deflate(deflate.winbits=-15)", "deflate(deflate.winbits=-15)"),
            ("deflate(deflate.winbits=-9)", "deflate(deflate.winbits=-9)"),
            ("deflate(deflate.winbits=9)", "deflate(deflate.winbits=9)"),
            ("deflate(deflate.winbits=15)", "deflate(deflate.winbits=15)"),
            ("snappy", "snappy"),
            ("snappy-2", "snappy-2"),
            ("zstd()", "zstd"),
        ] {
            let algorithm = Algorithm::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(algorithm.to_string(), canonical);
            assert_eq!(Algorithm::parse(canonical).as_ref(), Ok(&algorithm));
            let json = serde_json::to_string(&algorithm).unwrap();
            assert_eq!(json, format!("\"{canonical}\""));
            assert_eq!(serde_json::from_str::<Algorithm>(&json).unwrap(), algorithm);
        }
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, named) in [
            ("zst", "`zstd`"),
            ("ZSTD", "`zstd`"),
            ("zstd(level=3", "zstd(level=3)"),
            ("zstd(3)", "zstd(level=3)"),
            ("zstd(level=23)", "-131072 to 22"),
            ("lz4(level=0)", " 1 "),
            ("lzo(level=1)", "\"lzo\""),
            ("zstd(level=high)", "high"),
            ("zstd(dictionary=/x)", "`dict`"),
            ("zstd(levl=3)", "`level`"),
            ("zstd(level=1, level=2)", "level"),
            ("zstd(dict=x)", "`x`"),
            ("zstd(dict=/x\0y)", "`/x"),
            ("deflate(deflate.winbits=-16)", "-15 to -9"),
            ("deflate(deflate.winbits=-8)", "-15 to -9"),
            ("deflate(deflate.winbits=0)", "9 to 15"),
            ("deflate(deflate.winbits=8)", "9 to 15"),
            ("deflate(deflate.winbits=16)", "9 to 15"),
            ("zstd(deflate.winbits=9)", "only deflate"),
            ("zstd lz4", "zstd lz4"),
            ("", ""),
        ] {
            let error = Algorithm::parse(text).expect_err(text);
            let hint = error.hint.expect(text);
            assert!(
                error.message.contains(named) || hint.contains(named),
                "{text}: {} ({hint})",
                error.message
            );
        }
    }

    #[test]
    fn a_known_algorithm_has_an_option_of_the_kernel() {
        assert_eq!(["zstd", "842", "snappy"].map(known_name), [Some("zstd"), Some("842"), None]);
        assert_eq!(with_option("lz4hc", false), "lz4hc (CONFIG_CRYPTO_LZ4HC)");
        assert_eq!(with_option("snappy", true), "snappy");
    }

    #[test]
    fn the_texts_of_the_kernel_are_understood() {
        let (names, selected) = parse_comp_algorithm("lzo-rle lzo [lz4] zstd \n");
        assert_eq!((names.len(), selected.as_deref()), (4, Some("lz4")));
        assert_eq!(parse_comp_algorithm(""), (vec![], None));
        let text = "#1: lzo-rle lzo lz4 [zstd] \n\0#3: [deflate] lzo \n";
        assert_eq!(parse_recomp_algorithm(text), [(1, "zstd".to_owned()), (3, "deflate".to_owned())]);
        assert_eq!(parse_recomp_algorithm("\n"), []);
    }
}
