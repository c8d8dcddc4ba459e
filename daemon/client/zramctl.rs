//! The options with which zramctl(8) sets up and resets devices, done by the daemon.

use super::args::{Change, Cli, Create, Zramctl};
use super::{changes, connect, out, read};
use engine::sample::Detail;
use engine::{Error, ErrorKind};
use logic::exit::ExitStatus;
use logic::sample::{Snapshot, StateView};

pub fn run(cli: &Cli, words: &Zramctl) -> Result<ExitStatus, Error> {
    let ask = !cli.no_ask_password;
    if words.reset {
        let snapshot = read::figures(cli.config.as_ref(), Detail::Listed)?;
        words.devices.iter().try_for_each(|name| must_be_idle(&snapshot, changes::bare(name)))?;
        // As with zramctl, what is stored on it is lost.
        let change = Change { force: true, no_block: false };
        return Ok(connect::run(changes::remove(ask, &words.devices, change)));
    }
    let Some(size) = &words.size else {
        out::line(&first_unused(cli)?);
        return Ok(ExitStatus::Success);
    };
    let [name] = &words.devices[..] else {
        let create = create(words, size, None)?;
        return Ok(connect::run(changes::create(ask, &create)));
    };
    let create = create(words, size, Some(changes::bare(name).to_owned()))?;
    // As zramctl, it prints no name that was given.
    Ok(connect::run(async { changes::created(ask, &create).await.map(|_| ExitStatus::Success) }))
}

/// The options of `create` for a device with nothing on it.
fn create(words: &Zramctl, size: &str, name: Option<String>) -> Result<Create, Error> {
    let size = bytes(size).ok_or_else(|| {
        let message = format!("{size:?} is no size; write a number of bytes, or for example 512M or 1.5GiB");
        Error::new(ErrorKind::InvalidArgument, message)
    })?;
    let fs_type = Some("none".to_owned());
    Ok(Create {
        name,
        size: Some(format!("{size}B")),
        algorithm: words.algorithm.clone(),
        fs_type,
        ..Create::default()
    })
}

/// A size as in util-linux: K, M, … and KiB, MiB, … are powers of 1024, and KB, MB, … powers of 1000.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let suffix = suffix.to_ascii_uppercase();
    let unit = match suffix.as_str() {
        "" | "B" => 1.0,
        suffix => {
            let power = "KMGTPE".find(suffix.get(..1)?)? + 1;
            let base: f64 = match suffix.get(1..)? {
                "" | "IB" => 1024.0,
                "B" => 1000.0,
                _ => return None,
            };
            base.powi(i32::try_from(power).ok()?)
        }
    };
    let bytes = number * unit;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 1 and 2^63.
    (1.0..9.2e18).contains(&bytes).then_some(bytes as u64)
}

/// An error for a device that is swap or mounted, as zramctl has it.
fn must_be_idle(snapshot: &Snapshot, name: &str) -> Result<(), Error> {
    let what = match snapshot.device(name).map(|device| device.state) {
        Some(StateView::Active) => "swap",
        Some(StateView::Mounted) => "a file system",
        _ => return Ok(()),
    };
    let message = format!("{name} is in use as {what}; `zramdctl remove {name}` takes it out of use");
    Err(Error::new(ErrorKind::Busy, message))
}

/// The node of the first device that is neither set up nor configured.
fn first_unused(cli: &Cli) -> Result<String, Error> {
    let loaded = read::config(cli.config.as_ref());
    let snapshot = read::figures(cli.config.as_ref(), Detail::Listed)?;
    let mut unused = snapshot.devices.iter().filter(|device| {
        device.state == StateView::Unused
            && !device.managed
            && !loaded.merged.sections.contains_key(&device.name)
    });
    let first = unused.next().map(|device| format!("/dev/{}", device.name));
    first.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "there is no unused zram device; `zramdctl -f -s SIZE` adds one and sets it up",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_zramctl() {
        for (text, expected) in [
            ("1024", Some(1024)),
            ("512M", Some(512 << 20)),
            ("1.5GiB", Some(3 << 29)),
            ("2k", Some(2048)),
            ("5MB", Some(5_000_000)),
            ("1E", Some(1 << 60)),
            ("16E", None),
            ("0", None),
            ("M", None),
            ("-1", None),
            ("1MX", None),
            ("1 M", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn a_device_that_is_set_up_has_nothing_on_it() {
        let words = Zramctl { algorithm: Some("lz4".to_owned()), ..Zramctl::default() };
        let create = create(&words, "4M", None).unwrap();
        let Create { size, algorithm, fs_type, name, .. } = create;
        let texts = [size, algorithm, fs_type, name].map(Option::unwrap_or_default);
        assert_eq!(texts, ["4194304B", "lz4", "none", ""]);
    }
}
