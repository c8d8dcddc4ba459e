//! Turns merged sections into [`Settings`]: validated and typed, with all problems of all sections.

use super::device::{check_defaults, device};
use super::hint::meant_section;
use super::keys::benchmark as benchmark_keys;
use super::maintain;
use super::merge::Merged;
use super::ramdisk;
use super::schema::SectionKind;
use super::section::SectionReader;
use super::settings::{BenchmarkSettings, Settings, ZswapSettings};
use super::vm;
use super::zswap;
use crate::finding::Finding;
use crate::origin::Origin;

/// Builds the settings.
pub fn assemble(merged: &Merged) -> (Settings, Vec<Finding>) {
    let mut settings = Settings::default();
    let mut problems = Vec::new();
    let mut disks = Vec::new();
    let mut asked = None;
    // Whether nothing is configured for zswap.
    let mut is_left = !merged.broken.contains("zswap");
    let defaults = merged.sections.get("defaults");
    for (name, section) in &merged.sections {
        let Some(kind) = SectionKind::of(name) else {
            problems.push(unknown_section(name, &section.origin));
            continue;
        };
        let mut reader = SectionReader::new(section, kind, defaults.filter(|_| kind == SectionKind::Device));
        match kind {
            SectionKind::Defaults => check_defaults(&mut reader),
            SectionKind::Benchmark => settings.benchmark = benchmark(&mut reader),
            SectionKind::Maintenance => {
                asked = maintain::read(&mut reader).filter(|_| !reader.failed);
            }
            SectionKind::Vm => settings.vm = Some(vm::vm(&mut reader)).filter(|_| !reader.failed),
            SectionKind::Zswap => {
                settings.zswap = zswap::zswap(&mut reader).filter(|_| !reader.failed);
                is_left = !reader.failed && settings.zswap.is_none();
            }
            SectionKind::Ramdisk => {
                let built = ramdisk::ramdisk(name, &mut reader, defaults);
                disks.extend(built.filter(|_| !reader.failed));
            }
            SectionKind::Device => {
                let built = device(name, &mut reader);
                settings.devices.extend(built.filter(|_| !reader.failed));
            }
        }
        // Each device would repeat those of `[defaults]`.
        let is_new =
            |problem: &Finding| kind == SectionKind::Defaults || !problem.key().starts_with("defaults.");
        problems.extend(reader.problems.into_iter().filter(is_new));
    }
    for (name, section) in &merged.damaged {
        match SectionKind::of(name) {
            Some(kind) => problems.extend(SectionReader::new(section, kind, None).each()),
            None => problems.push(unknown_section(name, &section.origin)),
        }
    }
    if let Some(vm) = settings.vm.as_ref().filter(|vm| vm.tune && is_left) {
        settings.zswap = Some(ZswapSettings::off(vm.origin.clone()));
    }
    ramdisk::number_devices(disks, merged, &mut settings, &mut problems);
    settings.devices.sort_by_key(|device| device.number);
    if let Some(asked) = asked {
        settings.maintenance = Some(asked.apply(&mut settings.devices, &mut problems));
    }
    (settings, problems)
}

/// An invalid word is ignored; the rest of the section is used.
fn benchmark(reader: &mut SectionReader<'_>) -> BenchmarkSettings {
    BenchmarkSettings {
        when: reader.choice(&benchmark_keys::WHEN).unwrap_or_default(),
        profile: reader.choice(&benchmark_keys::PROFILE).unwrap_or_default(),
        sample: reader.choice(&benchmark_keys::SAMPLE).unwrap_or_default(),
    }
}

fn unknown_section(name: &str, origin: &Origin) -> Finding {
    Finding::error(origin.clone(), format!("unknown section [{name}]")).remedy(meant_section(name))
}

#[cfg(test)]
mod tests {
    use crate::config::load;

    #[test]
    fn tuned_settings_disable_zswap_unless_its_section_says_something() {
        for (zswap, expected) in [
            ("", Some(false)),
            ("[zswap]\n", Some(false)),
            ("[zswap]\nenabled = false\n", Some(false)),
            ("[zswap]\nenabled = true\n", Some(true)),
            ("[zswap]\nenabled = 5\n", None),
            ("[zswap]\nenabled =\n", None),
        ] {
            let settings = load(&[("f".into(), format!("[vm]\ntune = true\n{zswap}"))], "").settings;
            assert_eq!(settings.zswap.map(|zswap| zswap.enabled), expected, "{zswap}");
        }
        let kept = load(&[("f".into(), "[vm]\n".to_owned())], "").settings;
        assert_eq!(kept.zswap, None);
    }
}
