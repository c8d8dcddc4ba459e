//! `drain` and `refill`: compressed swap is off during hibernation. Run by `zramd-drain.service`.

use engine::Error;
use engine::device::drain::Units;
use host::linux::{LinuxHost, pid_1};
use host::out;
use logic::device::drain::Drained;
use logic::exit::ExitStatus;
use logic::unit::{setup_unit, swap_unit};

/// Runs `drain`.
pub fn run() -> ExitStatus {
    let mut seen = false;
    let done = engine::device::drain::drain(&mut LinuxHost::new("/"), &mut Pid1, |number, outcome| {
        seen = true;
        match outcome {
            Drained::Off(_) => out::line(&format!("zram{number}: {outcome}")),
            Drained::Stays(_) => out::warning(&format!("zram{number}: {outcome}")),
        }
    });
    if done.is_ok() && !seen {
        out::line("no compressed swap of zramd is on");
    }
    end(done)
}

/// Runs `refill`.
pub fn refill() -> ExitStatus {
    let done = engine::device::drain::refill(&mut LinuxHost::new("/"), &mut Pid1);
    end(done.map(|numbers| numbers.iter().for_each(|number| out::line(&format!("zram{number}: on again")))))
}

fn end(done: Result<(), Error>) -> ExitStatus {
    match done {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            out::note(&format!("zramd-worker: {error}"));
            error.exit_status()
        }
    }
}

/// PID 1 of this machine.
struct Pid1;

impl Units<LinuxHost> for Pid1 {
    fn follow(&mut self, _: &mut LinuxHost) -> Result<(), Error> {
        pid_1::follow_configuration()
    }

    fn stop(&mut self, _: &mut LinuxHost, number: u32) -> Result<(), Error> {
        // One at a time: without its file, the ordering of the first against the second would be lost.
        pid_1::stop(&[&swap_unit(number)])?;
        Ok(pid_1::stop(&[&setup_unit(number)])?)
    }

    fn start(&mut self, _: &mut LinuxHost, numbers: &[u32]) -> Result<Vec<u32>, Error> {
        let mut known = Vec::new();
        for number in numbers {
            if pid_1::property(&swap_unit(*number), "LoadState")? == "loaded" {
                known.push(*number);
            } else {
                out::line(&format!("zram{number}: no usable section in the configuration any more"));
            }
        }
        let units: Vec<String> = known.iter().map(|number| swap_unit(*number)).collect();
        let units: Vec<&str> = units.iter().map(String::as_str).collect();
        if !units.is_empty()
            && let Err(error) = pid_1::start(&units)
        {
            // The swaps that are on afterwards decide about success.
            out::warning(&error.to_string());
        }
        Ok(known)
    }
}
