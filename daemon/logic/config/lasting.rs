//! Lasting changes: the drop-in of `zramdctl set`, `unset` and `edit`, and of Configure on the bus.

use std::collections::BTreeMap;

use super::edit::{self, Refused};
use super::keys::{device, ramdisk};
use super::ramdisk::wrong_name;
use super::schema::SectionKind;
use super::{Loaded, fragment::Assignment};
use crate::error::{Error, ErrorKind};

/// The drop-in.
pub const FILE: &str = "/etc/zramd/zramd.toml.d/99-zramdctl.toml";
pub const NAME: &str = "99-zramdctl.toml";

/// Why a lasting change does not last, or is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transient {
    /// The drop-in is in memory.
    InMemory,
    /// Its directory cannot be written to.
    ReadOnly,
}

impl Transient {
    /// What it means, as a clause.
    pub fn message(self) -> &'static str {
        match self {
            Transient::InMemory => {
                "/etc/zramd is in memory, so that changes of `zramdctl set` and `edit` are lost at the next boot"
            }
            Transient::ReadOnly => "/etc/zramd is read-only, so that `zramdctl set` and `edit` are refused",
        }
    }

    /// What to do instead.
    pub fn remedy(self) -> &'static str {
        match self {
            Transient::InMemory => {
                "what is to last, write into /usr/lib/zramd/zramd.toml of the image or the credential zramd.toml"
            }
            Transient::ReadOnly => {
                "use `zramdctl set --runtime` until the next boot; if a confext is merged, change its files, or unmerge it"
            }
        }
    }
}

/// First line of a new file.
pub const HEAD: &str = "# Lasting changes: `zramdctl set` and `zramdctl unset` change single keys, `zramdctl edit` opens an editor.\n";

/// New values as TOML by section and key; `None` removes a key from the drop-in.
pub type Changes = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// Keys of `[zramN]` and `[defaults]` that [`check`] allows. Only names, so that the daemon does not contain the descriptions.
const DEVICE: [&str; 8] = [
    device::ZRAM_SIZE.name,
    device::ZRAM_FRACTION.name,
    device::MAX_ZRAM_SIZE.name,
    device::HOST_MEMORY_LIMIT.name,
    device::ZRAM_RESIDENT_LIMIT.name,
    device::COMPRESSION_ALGORITHM.name,
    device::RECOMPRESSION_ALGORITHM.name,
    device::SWAP_PRIORITY.name,
];
/// Those of `[ramdisk.NAME]`.
const RAMDISK: [&str; 4] = [
    ramdisk::SIZE.name,
    ramdisk::INODES.name,
    ramdisk::ZRAM_RESIDENT_LIMIT.name,
    ramdisk::COMPRESSION_ALGORITHM.name,
];

/// The keys of a section that can be changed without an editor: sizes, algorithms, priority and limits. Others name paths,
/// devices, owners or commands, which amounts to running code as root.
pub fn keys(section: &str) -> Result<&'static [&'static str], Error> {
    if let Some((message, hint)) = section.strip_prefix("ramdisk.").and_then(wrong_name) {
        return Err(Error::new(ErrorKind::InvalidArgument, format!("{message} ({hint})")));
    }
    match SectionKind::of(section) {
        Some(SectionKind::Device | SectionKind::Defaults) => Ok(&DEVICE),
        Some(SectionKind::Ramdisk) => Ok(&RAMDISK),
        Some(SectionKind::Vm | SectionKind::Zswap | SectionKind::Maintenance | SectionKind::Benchmark) => {
            Ok(&[])
        }
        None => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{section:?} is no section; write for example zram0, ramdisk.logs or defaults"),
        )),
    }
}

/// An error for a key that is not among [`keys`].
pub fn check(section: &str, key: &str) -> Result<(), Error> {
    let keys = keys(section)?;
    if keys.contains(&key) {
        return Ok(());
    }
    let message = match keys {
        [] => format!("no key of [{section}] can be changed here: root changes them with `zramdctl edit`"),
        keys => format!(
            "`{key}` of [{section}] cannot be changed here, only {}: root changes others with `zramdctl edit`",
            keys.join(", ")
        ),
    };
    Err(Error::new(ErrorKind::Unsafe, message))
}

/// Whether a value is an algorithm with a dictionary, which is the absolute path of a file. `value` is TOML.
fn names_a_file(key: &str, value: &str) -> bool {
    key.ends_with("-algorithm") && value.contains('/')
}

/// An error for assignments until the next boot that only root may make: other keys than [`keys`], and dictionaries. Values are
/// TOML.
pub fn must_not_need_root<'a>(
    section: &str,
    assigned: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(), Error> {
    let open = keys(section)?;
    let refused: Vec<String> = assigned
        .filter_map(|(key, value)| match open.contains(&key) {
            true if names_a_file(key, value) => Some(format!("`{key}` with a dictionary")),
            true => None,
            false => Some(format!("`{key}`")),
        })
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    let message = format!(
        "only root may assign {}: run the command as root, for example with sudo; other users may assign {}",
        refused.join(", "),
        open.join(", ")
    );
    Err(Error::new(ErrorKind::NotPermitted, message))
}

/// An error for an algorithm with a dictionary. `value` is TOML.
pub fn check_value(section: &str, key: &str, value: &str) -> Result<(), Error> {
    if !names_a_file(key, value) {
        return Ok(());
    }
    let message =
        format!("`{key}` of [{section}] with a dictionary is changed by root in files: run `zramdctl edit`");
    Err(Error::new(ErrorKind::Unsafe, message))
}

/// The text of the drop-in after these changes; `None` if nothing is left in it.
pub fn changed(text: Option<&str>, changes: &Changes) -> Result<Option<String>, Error> {
    let text = text.filter(|text| !text.trim().is_empty());
    let mut text = text.unwrap_or(HEAD).to_owned();
    for (section, keys) in changes {
        for (key, value) in keys {
            text = edit::change(&text, section, key, value.as_deref()).map_err(|refused| match refused {
                Refused::Missing => {
                    let message = format!("`{key}` of [{section}] is not in {FILE}, so it cannot be unset");
                    Error::new(ErrorKind::NotFound, message)
                }
                Refused::Form => {
                    let message = format!(
                        "{FILE} has a mistake, or is written in a way that only an editor can change: run `zramdctl edit`"
                    );
                    Error::new(ErrorKind::Unsupported, message)
                }
            })?;
        }
    }
    Ok(left(text))
}

/// The text of the drop-in; `None` if nothing is left in it, because an empty file would hide others of its name.
pub fn left(text: String) -> Option<String> {
    let trimmed = text.trim();
    (!trimmed.is_empty() && trimmed != HEAD.trim()).then_some(text)
}

/// An error for values of a device or RAM disk that no other file describes, unless they say how large it is: the name of an
/// existing one may be misspelled.
pub fn must_be_described(loaded: &Loaded, changes: &Changes) -> Result<(), Error> {
    for (section, keys) in changes {
        let (described_by, remedy) = match SectionKind::of(section) {
            Some(SectionKind::Device) => (
                &[device::ZRAM_SIZE.name, device::ZRAM_FRACTION.name][..],
                format!("`zramdctl set {section} zram-size=SIZE` creates one"),
            ),
            Some(SectionKind::Ramdisk) => {
                (&[ramdisk::MOUNT_POINT.name][..], "`zramdctl edit` adds one".to_owned())
            }
            _ => continue,
        };
        let found = loaded.merged.sections.get(section).map(|section| &section.keys);
        let is_described = found.is_some_and(|found| {
            let elsewhere = |assignment: &Assignment| !assignment.origin.file.ends_with(&FILE[1..]);
            found.values().any(elsewhere) || described_by.iter().any(|key| found.contains_key(*key))
        });
        if is_described || keys.values().all(Option::is_none) {
            continue;
        }
        if loaded.merged.broken.contains(section) {
            let message = format!("[{section}] has a mistake: correct what `zramdctl check` shows first");
            return Err(Error::new(ErrorKind::Config, message));
        }
        let message = format!("there is no section [{section}] in the configuration; {remedy}");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(())
}

/// An error for a new value that another file overrides. Overrides until the next boot are expected to.
pub fn must_have_effect(loaded: &Loaded, changes: &Changes) -> Result<(), Error> {
    for (section, keys) in changes {
        for key in keys.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key) {
            let overridden = loaded.merged.configured.get(&(section.clone(), key.clone()));
            let own = || loaded.merged.sections.get(section).and_then(|section| section.keys.get(key));
            let origin = overridden.or_else(own).map(|Assignment { origin, .. }| origin);
            // A section with a mistake is reported as such.
            if let Some(origin) = origin.filter(|origin| !origin.file.ends_with(&FILE[1..])) {
                let message = format!(
                    "`{key}` of [{section}] is also assigned in {}, which takes precedence over {FILE}: change it there",
                    origin.place()
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn changes(section: &str, key: &str, value: Option<&str>) -> Changes {
        let keys = BTreeMap::from([(key.to_owned(), value.map(str::to_owned))]);
        BTreeMap::from([(section.to_owned(), keys)])
    }

    #[test]
    fn what_amounts_to_running_code_is_refused() {
        for (section, allowed) in [("zram0", 8), ("defaults", 8), ("ramdisk.a", 4), ("vm", 0)] {
            let all = SectionKind::of(section).unwrap().keys().iter().map(|key| key.name);
            let (open, closed): (Vec<&str>, _) = all.partition(|key| check(section, key).is_ok());
            assert_eq!(open.len(), allowed, "{section}: {open:?}");
            for key in closed {
                assert_eq!(check(section, key).unwrap_err().kind, ErrorKind::Unsafe, "{key}");
            }
        }
        for section in ["zram", "ramdisk.", "ramdisk.a b", "ramdisk.../x"] {
            assert_eq!(check(section, "size").unwrap_err().kind, ErrorKind::InvalidArgument, "{section}");
        }
        let value = |key, value| check_value("zram0", key, value).map_err(|error| error.kind);
        assert_eq!(value("zram-size", "\"ram / 2\""), Ok(()));
        assert_eq!(value("compression-algorithm", "\"zstd(level=3)\""), Ok(()));
        for key in ["compression-algorithm", "recompression-algorithm"] {
            assert_eq!(value(key, "[\"lz4\", \"zstd(dict=/a)\"]"), Err(ErrorKind::Unsafe));
        }
    }

    #[test]
    fn the_file_appears_with_the_first_key_and_goes_with_the_last() {
        let text = changed(None, &changes("zram0", "swap-priority", Some("5"))).unwrap();
        assert_eq!(text.as_deref(), Some(format!("{HEAD}\n[zram0]\nswap-priority = 5\n").as_str()));
        assert_eq!(changed(text.as_deref(), &changes("zram0", "swap-priority", None)), Ok(None));
        let missing = changed(text.as_deref(), &changes("zram0", "zram-size", None)).unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        let inline = changed(Some("zram0 = {}\n"), &changes("zram0", "zram-size", Some("5"))).unwrap_err();
        assert_eq!(inline.kind, ErrorKind::Unsupported);
    }

    #[test]
    fn a_misspelled_name_creates_nothing() {
        let result = |files: &[(&str, &str)], section: &str, key: &str| {
            let files: Vec<_> =
                files.iter().map(|(path, text)| ((*path).into(), (*text).to_owned())).collect();
            must_be_described(&load(&files, ""), &changes(section, key, Some("5")))
                .map_err(|error| error.kind)
        };
        let other = "/etc/zramd/zramd.toml";
        let priority = "[zram1]\nswap-priority = 5\n";
        let size = "[zram1]\nzram-size = \"64MiB\"\n";
        let disk = "[ramdisk.a]\nsize = \"5MiB\"\n";
        let missing = Err(ErrorKind::NotFound);
        let broken = [(other, "[zram1]\nzram-size =\n"), (FILE, priority)];
        assert_eq!(result(&broken, "zram1", "swap-priority"), Err(ErrorKind::Config));
        assert_eq!(result(&[(FILE, priority)], "zram1", "swap-priority"), missing);
        assert_eq!(result(&[(FILE, size)], "zram1", "zram-size"), Ok(()));
        assert_eq!(
            result(&[(other, "[zram1]\nfs-type = \"ext4\""), (FILE, priority)], "zram1", "swap-priority"),
            Ok(())
        );
        assert_eq!(result(&[(FILE, disk)], "ramdisk.a", "size"), missing);
        assert_eq!(
            result(&[(other, "[ramdisk.a]\nmount-point = \"/a\""), (FILE, disk)], "ramdisk.a", "size"),
            Ok(())
        );
    }

    #[test]
    fn a_value_that_another_file_overrides_is_refused() {
        let own = (FILE.into(), "[zram0]\nswap-priority = 5\n".to_owned());
        let file = |path: &str| (path.into(), "[zram0]\nswap-priority = 7\n".to_owned());
        let wanted = changes("zram0", "swap-priority", Some("5"));
        let result = |files: &[_]| must_have_effect(&load(files, ""), &wanted).map_err(|error| error.kind);
        assert_eq!(result(&[file("/etc/zramd/zramd.toml"), own.clone()]), Ok(()));
        let runtime = file("/run/zramd/zramd.toml.d/zz-runtime-zram0.toml");
        assert_eq!(result(&[own.clone(), runtime]), Ok(()));
        let later = file("/etc/zramd/zramd.toml.d/zz.toml");
        assert_eq!(result(&[own, later]), Err(ErrorKind::Unsupported));
    }

    #[test]
    fn what_users_may_assign_names_no_path_and_no_command() {
        let kind = |section: &str, assigned: &[(&str, &str)]| {
            must_not_need_root(section, assigned.iter().copied()).map_err(|error| error.kind)
        };
        let refused = Err(ErrorKind::NotPermitted);
        assert_eq!(kind("zram0", &[]), Ok(()));
        assert_eq!(kind("zram0", &[("zram-size", "\"ram / 2\""), ("swap-priority", "5")]), Ok(()));
        assert_eq!(kind("zram0", &[("compression-algorithm", "\"zstd(level=3)\"")]), Ok(()));
        assert_eq!(kind("zram0", &[("compression-algorithm", "\"zstd(dict=/a)\"")]), refused);
        assert_eq!(kind("zram0", &[("swap-priority", "5"), ("mount-point", "\"/a\"")]), refused);
        assert_eq!(kind("vm", &[("swappiness", "5")]), refused);
        assert_eq!(kind("zram", &[]), Err(ErrorKind::InvalidArgument));
    }
}
