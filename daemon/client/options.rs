//! Translates the arguments of `create` to keys of a section, with their types.

use std::collections::BTreeMap;

use zbus::Variant;

use super::amount::amount;
use super::args::Create;
use logic::config::key::Type;
use logic::config::schema::SectionKind;
use logic::error::{Error, ErrorKind};
use logic::proc::{HIGHEST_DEVICE, device_number};

/// Options of `CreateDevice`.
pub type Options = BTreeMap<String, Variant<'static>>;

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// The options for the arguments of `create`.
pub fn of_create(words: &Create) -> Result<Options, Error> {
    if let Some(number) = words.name.as_deref().and_then(device_number).filter(|n| *n > HIGHEST_DEVICE) {
        return Err(usage(format!("zram{number}: zramd makes devices up to zram{HIGHEST_DEVICE}")));
    }
    // Mistakes in the expression are reported with the rest of the section.
    if words.size.as_deref().is_some_and(|size| amount(size) == Ok(0)) {
        return Err(usage("a device needs a size, for example `zramdctl create --size 1GiB`"));
    }
    let mut options = Options::new();
    let text = |text: &String| Variant::from(text.clone());
    let given = [
        ("name", words.name.as_ref().map(text)),
        ("zram-size", words.size.as_ref().map(text)),
        ("compression-algorithm", words.algorithm.as_deref().map(list)),
        ("swap-priority", words.priority.map(Variant::from)),
        ("mount-point", words.mount_point.as_ref().map(text)),
        ("fs-type", words.fs_type.as_ref().map(text)),
    ];
    for (key, value) in given {
        if let Some(value) = value {
            options.insert(key.to_owned(), value);
        }
    }
    for assignment in &words.set {
        let (key, value) = assignment
            .split_once('=')
            .ok_or_else(|| usage(format!("`--set {assignment}`: write KEY=VALUE, for example label=fast")))?;
        let (key, value) = (key.trim(), value.trim());
        if options.insert(key.to_owned(), value_of(SectionKind::Device, key, value)).is_some() {
            return Err(usage(format!("`{key}` is given twice")));
        }
    }
    Ok(options)
}

/// A value with the type of its key; if it does not parse, a string, for which the daemon returns an error.
pub fn value_of(section: SectionKind, key: &str, text: &str) -> Variant<'static> {
    let value = match section.key(key).map(|key| key.kind) {
        Some(Type::Bool) => text.parse::<bool>().ok().map(Variant::from),
        Some(Type::Integer { .. }) => text.parse::<i64>().ok().map(Variant::from),
        Some(Type::Number) => text.parse::<f64>().ok().map(Variant::from),
        Some(Type::Words | Type::Algorithms | Type::Secondary | Type::Command) => Some(list(text)),
        _ => None,
    };
    value.unwrap_or_else(|| text.to_owned().into())
}

/// `zstd(level=3),lz4` as a list, a single one as a string. Commas in parentheses separate parameters.
fn list(text: &str) -> Variant<'static> {
    let mut depth = 0_i32;
    let mut words = vec![String::new()];
    for letter in text.chars() {
        match letter {
            ',' if depth == 0 => {
                words.push(String::new());
                continue;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    let words: Vec<String> = words.iter().map(|word| word.trim().to_owned()).collect();
    match words.as_slice() {
        [word] => word.clone().into(),
        _ => words.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(set: &[&str]) -> Create {
        Create {
            name: Some("zram5".into()),
            size: Some("64MiB".into()),
            algorithm: Some("zstd(level=3,deflate.winbits=9), lz4".into()),
            priority: Some(-1),
            mount_point: None,
            fs_type: None,
            set: set.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    #[test]
    fn words_become_keys_of_the_right_types() {
        let words = create(&[
            "label = fast",
            "zram-fraction=0.5",
            "force-resident-limit=true",
            "mode=0750",
            "zram-resident-limit=64",
            "options=discard,noatime",
            "mkfs-options=-N,1000",
        ]);
        let options = of_create(&words).unwrap();
        let list = |words: &[&str]| {
            Variant::from(words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>())
        };
        let expected: [(&str, Variant<'_>); 11] = [
            ("name", "zram5".into()),
            ("zram-size", "64MiB".into()),
            ("compression-algorithm", list(&["zstd(level=3,deflate.winbits=9)", "lz4"])),
            ("swap-priority", (-1_i32).into()),
            ("label", "fast".into()),
            ("zram-fraction", 0.5.into()),
            ("force-resident-limit", true.into()),
            ("mode", "0750".into()),
            ("zram-resident-limit", "64".into()),
            ("options", "discard,noatime".into()),
            ("mkfs-options", list(&["-N", "1000"])),
        ];
        assert_eq!(options.len(), expected.len());
        for (key, value) in expected {
            assert_eq!(options.get(key), Some(&value), "{key}");
        }
    }

    #[test]
    fn mistakes_are_wrong_usage() {
        let far = Create { name: Some("/dev/zram256".into()), ..create(&[]) };
        let failure = of_create(&far).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::InvalidArgument);
        assert!(failure.message.contains("zram255"), "{}", failure.message);
        let empty = Create { size: Some("ram * 0".into()), ..create(&[]) };
        assert!(of_create(&empty).unwrap_err().message.contains("needs a size"));
        for (set, expected) in [("label", "KEY=VALUE"), ("zram-size=1", "zram-size")] {
            let failure = of_create(&create(&[set])).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidArgument);
            assert!(failure.message.contains(expected), "{failure:?}");
        }
    }
}
