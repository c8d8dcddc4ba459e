//! Selecting devices and RAM disks by name or pattern.

use super::columns::Row;
use super::out;
use logic::exit::ExitStatus;

/// Whether `name` matches `pattern`; `*` is any text, `?` any character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    // Where to retry after a mismatch: the last star takes one more character.
    let mut retry = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                retry = Some((at + 1, in_name));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match retry {
                Some((after_star, begin)) => {
                    retry = Some((after_star, begin + 1));
                    at = after_star;
                    in_name = begin + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

/// Whether an argument selects this row: `zram0`, `/dev/zram0`, `logs`, `ramdisk.logs`, or a pattern.
pub fn means(word: &str, row: Row<'_>) -> bool {
    matches(word, row.name()) || without_prefix(word, row).is_some_and(|word| matches(word, row.name()))
}

/// As [`means`], without patterns.
pub fn is(word: &str, row: Row<'_>) -> bool {
    word == row.name() || without_prefix(word, row) == Some(row.name())
}

fn without_prefix<'w>(word: &'w str, row: Row<'_>) -> Option<&'w str> {
    word.strip_prefix(match row {
        Row::Device(_) | Row::Zswap(_) => "/dev/",
        Row::Ramdisk(_) => "ramdisk.",
    })
}

/// The rows selected by any of the arguments (all without arguments), and the arguments that select none.
pub fn select<'a, 'w>(rows: Vec<Row<'a>>, words: &'w [String]) -> (Vec<Row<'a>>, Vec<&'w str>) {
    if words.is_empty() {
        return (rows, Vec::new());
    }
    let meant = |word: &str| rows.iter().any(|row| means(word, *row));
    let unknown = words.iter().map(String::as_str).filter(|word| !meant(word)).collect();
    let rows = rows.iter().filter(|row| words.iter().any(|word| means(word, **row))).copied().collect();
    (rows, unknown)
}

/// Prints an error for each unknown name, and returns the exit status.
pub fn report(unknown: &[&str]) -> ExitStatus {
    for word in unknown {
        out::error(&format!("{word}: there is no such zram device or RAM disk"));
    }
    if unknown.is_empty() { ExitStatus::Success } else { ExitStatus::NotFound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logic::sample::{DeviceView, RamdiskView, Snapshot};
    use proptest::prelude::proptest;

    #[test]
    fn stars_and_question_marks_are_understood() {
        for (pattern, name, expected) in [
            ("zram0", "zram0", true),
            ("zram0", "zram01", false),
            ("zram?", "zram0", true),
            ("zram?", "zram10", false),
            ("zram*", "zram10", true),
            ("*", "", true),
            ("*0", "zram100", true),
            ("*a*b", "xaxbab", true),
            ("*a*b", "xaxba", false),
            ("", "", true),
            ("", "a", false),
            ("ż?", "żó", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_itself_in_stars(name in "[a-z0-9.]{0,12}", cut in 0usize..12) {
            let cut = cut.min(name.len());
            assert!(matches(&name, &name));
            let starred = format!("*{}*{}", &name[..cut], &name[cut..]);
            assert!(matches(&starred, &name));
            let longer = format!("{starred}!");
            assert!(!matches(&longer, &name));
        }
    }

    #[test]
    fn paths_and_sections_select_their_objects() {
        let device = |name: &str| DeviceView { name: name.to_owned(), ..DeviceView::default() };
        let snapshot = Snapshot {
            devices: vec![device("zram0"), device("zram1")],
            ramdisks: vec![RamdiskView { name: "logs".to_owned(), ..RamdiskView::default() }],
            ..Snapshot::default()
        };
        let names = |words: &[&str]| -> (Vec<String>, Vec<String>) {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let (rows, unknown) = select(Row::all(&snapshot), &words);
            (
                rows.iter().map(|row| row.name().to_owned()).collect(),
                unknown.into_iter().map(str::to_owned).collect(),
            )
        };
        assert_eq!(names(&[]).0, ["zram0", "zram1", "logs"]);
        assert_eq!(names(&["/dev/zram1", "ramdisk.l*"]).0, ["zram1", "logs"]);
        assert_eq!(
            names(&["ramdisk.zram0", "/dev/logs", "zram0"]),
            (vec!["zram0".to_owned()], vec!["ramdisk.zram0".to_owned(), "/dev/logs".to_owned()])
        );
    }
}
