//! Amounts of memory on the command line.

use engine::gather;
use host::linux::LinuxHost;
use logic::error::{Error, ErrorKind};
use logic::expr::{Expr, size_in_bytes};
use logic::plan::wanted;

/// An amount as in the configuration: `4GiB`, `50%`, `ram / 2`; a bare number is MiB.
pub fn amount(text: &str) -> Result<u64, Error> {
    let usage = |message: String| Error::new(ErrorKind::InvalidArgument, format!("{text:?}: {message}"));
    let expression = Expr::parse(text).map_err(|error| {
        usage(match error.hint {
            Some(hint) => format!("{}; {hint}", error.message),
            None => error.message,
        })
    })?;
    let facts = gather::machine(&LinuxHost::new("/"));
    let value = expression.evaluate(&wanted::variables(&facts));
    value.and_then(size_in_bytes).map_err(|error| usage(error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_the_configuration() {
        assert_eq!(amount("64"), Ok(64 << 20));
        assert_eq!(amount("1GiB"), Ok(1 << 30));
        assert!(amount("50%").is_ok_and(|bytes| bytes > 0));
        for wrong in ["64MB", "", "-1"] {
            assert_eq!(
                amount(wrong).map_err(|failure| failure.kind),
                Err(ErrorKind::InvalidArgument),
                "{wrong}"
            );
        }
    }
}
