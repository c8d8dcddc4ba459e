//! `zramd`: the daemon. It has no commands; `zramdctl` controls it.

use std::process::ExitCode;

use host::linux::test_letters;
use host::out;
use lexopt::prelude::{Long, Short, Value};
use logic::exit::ExitStatus;
use service::run::{Options, run};

const HELP: &str = "\
Usage: zramd [--config FILE]

Publishes statistics and control of compressed memory on the system bus, as org.zramd1. Started by zramd.service;
`zramdctl` is the program for people.

  -c, --config FILE    read this file instead of those below /usr/lib, /etc and /run, and activate swap and mounts
                       without systemd. DBUS_SYSTEM_BUS_ADDRESS chooses the bus.
      --log-level WORD one of emerg, alert, crit, err, warning, notice, info, debug and trace; without it, that of
                       SYSTEMD_LOG_LEVEL, or of zramd.log_level= or systemd.log_level= on the kernel command line
  -h, --help           print a short help
  -V, --version        print the version
";

/// The parsed command line.
enum Parsed {
    Help,
    Version,
    Run(Options),
}

fn parse() -> Result<Parsed, String> {
    let mut parser = lexopt::Parser::from_env();
    let mut options = Options::default();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => return Ok(Parsed::Help),
            Short('V') | Long("version") => return Ok(Parsed::Version),
            Short('c') | Long("config") => {
                options.config = Some(parser.value().map_err(|error| error.to_string())?.into());
            }
            Long("log-level") => {
                let word = parser.value().map_err(|error| error.to_string())?;
                options.log_level = Some(word.to_string_lossy().parse()?);
            }
            // Commands of an unrelated program with the same name, which old guides mention.
            Value(verb) if verb == "start" || verb == "stop" => {
                return Err("this is a different zramd than the one with `start` and `stop`; use systemctl"
                    .to_owned());
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(Parsed::Run(options))
}

fn main() -> ExitCode {
    test_letters::begin();
    let status = match parse() {
        Ok(Parsed::Help) => {
            out::text(HELP);
            ExitStatus::Success
        }
        Ok(Parsed::Version) => {
            out::line(concat!("zramd ", env!("CARGO_PKG_VERSION")));
            ExitStatus::Success
        }
        Ok(Parsed::Run(options)) => run(options),
        Err(message) => {
            out::note(&format!("zramd: {message}\nTry `zramd --help`."));
            ExitStatus::Usage
        }
    };
    out::end(status)
}
