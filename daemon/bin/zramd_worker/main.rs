//! `zramd-worker`: work that takes long or needs large libraries: benchmark, archives, passes over a device. A short-lived
//! program, started by units, by the daemon, and by `zramdctl` without a daemon.

mod benchmark;
mod configured;
mod drain;
mod frame;
mod maintain;
mod places;
mod ramdisk;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use engine::{Error, ErrorKind};
use host::linux::{log, test_letters, work};
use host::out;
use logic::exit::ExitStatus;
use logic::log::Context;
use logic::order::Order;
use logic::record::Target;

const HELP: &str = "Usage: zramd-worker VERB [NAME] [JSON]

Runs long operations for zramd. Administrators use `zramdctl`. JSON is an object with options.

  benchmark           measure, and store the verdict: idle, boot, profile,
                      algorithms, data, generator, processes, page-clusters,
                      threads, seconds
  bench-ramdisk       compare tmpfs, compressed memory and disks
  bench-swap          time page faults on private swap
  maintain            recompress and write back idle pages: cause, devices, only,
                      config
  load|save|verify|export|pin|unpin|delete|prepare-restore|cancel-restore|refresh NAME
                      a RAM disk: reason, snapshot, why, to, config
  hook NAME           run a command of a RAM disk: hook, reason
  places              make the directory below which RAM disks are filled
  drain               switch compressed swap off before hibernation
  refill              switch the swap that `drain` switched off on again
  order WORK          what the daemon has written to /run/zramd/work/WORK.order

";

/// The order of the daemon for this work, and its log messages: PID 1 cannot pass them on. Without one, that of the timer.
fn written(root: &Path, work: &str) -> Result<(Order, Option<Context>), String> {
    let path = work::order_path(work);
    let Some((json, context)) = work::take_order(root, work)? else {
        let order = Order::of_timer(work).ok_or_else(|| format!("there is no order for {work} in {path}"));
        return order.map(|order| (order, None));
    };
    let order: Order = serde_json::from_str(&json).map_err(|error| format!("{path}: {error}"))?;
    // The unit of each work has the rights that this work needs.
    if order.work() == work {
        Ok((order, Some(context)))
    } else {
        Err(format!("{path}: this is an order for {}", order.work()))
    }
}

fn run(words: impl Iterator<Item = OsString>) -> Result<ExitStatus, String> {
    let words = words.map(|word| word.into_string().map_err(|word| format!("{}: no UTF-8", word.display())));
    let words: Vec<String> = words.collect::<Result<_, _>>()?;
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let (order, context) = match texts[..] {
        ["-h" | "--help", ..] => {
            out::text(HELP);
            return Ok(ExitStatus::Success);
        }
        ["-V" | "--version", ..] => {
            out::line(concat!("zramd-worker ", env!("CARGO_PKG_VERSION")));
            return Ok(ExitStatus::Success);
        }
        ["order", work] => written(Path::new("/"), work)?,
        _ => {
            let order = Order::parse(&words)?;
            let disk = order.ramdisk().map(|disk| Target::Ramdisk(disk.name.clone()));
            let context = disk.as_ref().and_then(log::context_of_change);
            (order, context)
        }
    };
    log::open("zramd-worker", Path::new("/"), log::Options { context, ..log::Options::default() });
    let ramdisk = order.ramdisk().map(|disk| disk.name.as_str());
    let _span = tracing::error_span!("work", ZRAMD_WORK = order.work(), ZRAMD_RAMDISK = ramdisk).entered();
    match order {
        Order::Benchmark(options) => benchmark::run(options),
        Order::BenchRamdisk(options) => Ok(benchmark::compare::ramdisk(&options)),
        Order::BenchSwap(options) => Ok(benchmark::compare::swap(&options)),
        Order::Maintain(order) => Ok(maintain::run(order)),
        Order::Drain {} => Ok(drain::run()),
        Order::Refill {} => Ok(drain::refill()),
        Order::Places {} => Ok(places::run()),
        Order::Hook(order) => Ok(ramdisk::hooks::run(&order)),
        order => ramdisk::run(order),
    }
}

fn main() -> ExitCode {
    test_letters::begin();
    let mut words = std::env::args_os().skip(1).peekable();
    let is_called = words.next_if(|word| word == "--reply").is_some();
    if is_called {
        frame::reply();
    }
    let status = run(words).unwrap_or_else(|mut message| {
        if !is_called {
            message.push_str("\nTry `zramd-worker --help`.");
        }
        frame::report(&Err(Error::new(ErrorKind::InvalidArgument, message)))
    });
    out::end(status)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use logic::maintain::Cause;
    use logic::order::{BENCHMARK, MAINTENANCE, Maintain, RamdiskOrder};

    use super::*;

    #[test]
    fn an_order_is_carried_out_once() {
        let root = tempfile::tempdir().unwrap();
        let order = Order::Maintain(Maintain::all(Cause::Request));
        work::put_order(root.path(), MAINTENANCE, Some(&order)).unwrap();
        assert_eq!(written(root.path(), MAINTENANCE), Ok((order, Some(Context::default()))));
        assert!(!work::has_order(root.path(), MAINTENANCE));
        assert_eq!(written(root.path(), MAINTENANCE), Ok((Order::Maintain(Maintain::default()), None)));
        let Ok((Order::Benchmark(benchmark), None)) = written(root.path(), BENCHMARK) else {
            panic!("no benchmark")
        };
        assert!(benchmark.idle);
    }

    #[test]
    fn the_unit_of_a_work_does_no_other() {
        let root = tempfile::tempdir().unwrap();
        work::put_order(root.path(), "hook-data", Some(&Order::Export(RamdiskOrder::named("data")))).unwrap();
        let refused = written(root.path(), "hook-data").unwrap_err();
        assert!(refused.contains("hook-data.order: this is an order for ramdisk-data"), "{refused}");
    }

    /// A version before orders in JSON wrote `NAME.words`, and knew other options.
    #[test]
    fn orders_of_other_versions_are_refused_and_the_timer_runs() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("run/zramd/work");
        fs::create_dir_all(&directory).unwrap();
        for name in ["ramdisk-data.words", "maintenance.words"] {
            fs::write(directory.join(name), "save\0data\0--reason\0user").unwrap();
        }
        let refused = written(root.path(), "ramdisk-data").unwrap_err();
        assert!(refused.contains("there is no order for ramdisk-data"), "{refused}");
        assert_eq!(written(root.path(), MAINTENANCE), Ok((Order::Maintain(Maintain::default()), None)));
        let newer = r#"{"verb":"save","name":"data","gently":true}"#;
        fs::write(directory.join("ramdisk-data.order"), newer).unwrap();
        let refused = written(root.path(), "ramdisk-data").unwrap_err();
        assert!(refused.contains("ramdisk-data.order") && refused.contains("gently"), "{refused}");
        assert!(!work::has_order(root.path(), "ramdisk-data"), "it is not tried again");
    }
}
