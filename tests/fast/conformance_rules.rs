//! Idle marks, recompression and write-back in the simulator, compared line by line with the behaviour of two kernels.
//!
//! The lab scenario `zram-rules` runs `tests/lab/guest/zram-rules` on real devices and records their behaviour.

use std::time::Duration;

use host::{BlockProbe, Errno, Host, HostError};
use logic::device::attribute::Attribute;
use sim::kernel::KernelConfig;
use sim::slots::PAGE;
use sim::{SimHost, SimMachine};

const CASES: &str = include_str!("../lab/guest/zram-rules/cases");
const BACKING: &str = "/dev/wb";

/// Contents as in `run` beside the cases, as far as the simulator distinguishes them.
fn content(kind: &str) -> Vec<u8> {
    let page = usize::try_from(PAGE).unwrap();
    let of = |bytes: &[u8], length: usize| bytes.iter().copied().cycle().take(length).collect::<Vec<u8>>();
    match kind {
        "same" => vec![0; page],
        "noise" => of(b"\xA5\x5A\xC3", page),
        "text" => of(b"0123456789abcde", page),
        "base64" => of(b"0123456789abcde+", page),
        "packed" => [of(b"\xA5\x5A\xC3", page / 2), vec![0; page / 2]].concat(),
        "half" => [of(b"0123456789abcde", page / 2), vec![0; page / 2]].concat(),
        other => panic!("no pages are {other}"),
    }
}

fn pages(text: &str) -> std::ops::RangeInclusive<u64> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    first.parse().unwrap()..=last.parse().unwrap()
}

fn attribute(name: &str) -> Attribute {
    Attribute::ALL.into_iter().find(|attribute| attribute.to_string() == name).unwrap()
}

fn done(host: &mut SimHost, machine: &SimMachine, line: &str) -> Result<(), HostError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["device", ref attributes @ ..] => {
            host.write_attribute(0, Attribute::Reset, "1")?;
            for pair in attributes {
                let (name, value) = pair.split_once('=').unwrap();
                let value = value.replace("BACKING", BACKING).replace('+', " ");
                host.write_attribute(0, attribute(name), &value)?;
            }
            Ok(())
        }
        ["store", which, kind] => {
            pages(which).try_for_each(|number| host.write_pages(0, number * PAGE, &content(kind)))
        }
        ["read", which] => {
            pages(which).try_for_each(|number| host.read_pages(0, number * PAGE, 4096).map(drop))
        }
        ["discard", which] => pages(which).try_for_each(|number| host.discard(0, number * PAGE, PAGE)),
        ["wait", seconds] => {
            machine.change().clock += Duration::from_secs(seconds.parse().unwrap());
            Ok(())
        }
        [name, ..] => host.write_attribute(0, attribute(name), line[name.len()..].trim()),
        [] => Ok(()),
    }
}

fn numbers(host: &SimHost, attribute: Attribute) -> String {
    host.read_attribute(0, attribute).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn seen(host: &SimHost, machine: &SimMachine) -> String {
    let huge = numbers(host, Attribute::MmStat).split(' ').nth(7).unwrap().to_owned();
    let state = machine.look();
    let flags = state.devices[&0].slots.all.iter().map(|(number, slot)| {
        let known = [
            ('s', slot.same),
            ('w', slot.written),
            ('h', slot.huge),
            ('i', slot.idle),
            ('r', slot.priority > 0),
            ('n', slot.incompressible),
        ];
        let letters: String = known.iter().filter(|(_, is)| *is).map(|(letter, _)| *letter).collect();
        format!("{number}:{}", if letters.is_empty() { "-" } else { &letters })
    });
    let text = format!(
        "bd {}, limit {} {}, huge {huge}, {}",
        numbers(host, Attribute::BdStat),
        numbers(host, Attribute::WritebackLimit),
        numbers(host, Attribute::WritebackLimitEnable),
        flags.collect::<Vec<_>>().join(" ")
    );
    text.trim_end_matches([',', ' ']).to_owned()
}

fn word(errno: Option<Errno>) -> &'static str {
    match errno {
        Some(Errno::INVAL) => "EINVAL",
        Some(Errno::IO) => "EIO",
        Some(Errno::NOSPC) => "ENOSPC",
        Some(Errno::NODEV) => "ENODEV",
        other => panic!("{other:?}"),
    }
}

fn compare(kernel: KernelConfig, observed: &str) {
    let machine = SimMachine::new(kernel);
    let probe = BlockProbe { device: Some((98, 16)), head: vec![0; 65536], holders: Vec::new() };
    machine.change().blocks.insert(BACKING.to_owned(), probe);
    machine.change().block_bytes.insert(BACKING.to_owned(), 16 * PAGE);
    let mut host = machine.process();
    let mut observed = observed.lines();
    for line in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let came = done(&mut host, &machine, line).map_or_else(|error| word(error.errno()), |()| "ok");
        let simulated = format!("{line}: {came}; {}", seen(&host, &machine));
        assert_eq!(observed.next(), Some(simulated.as_str()), "left is the kernel, right the simulator");
    }
    assert_eq!(observed.next(), None);
}

#[test]
fn the_simulator_does_what_linux_6_12_does() {
    compare(KernelConfig::full(), include_str!("../lab/guest/zram-rules/debian"));
}

#[test]
fn the_simulator_does_what_linux_7_2_does() {
    compare(KernelConfig::newest(), include_str!("../lab/guest/zram-rules/newest"));
}
