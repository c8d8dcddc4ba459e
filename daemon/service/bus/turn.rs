//! How many calls of one caller may wait for something at the same time.
//!
//! zbus begins every call at once. One that is answered at once is gone before the next is read; those that wait for polkit or
//! for `zramd-setup` would pile up without end, and asking takes no rights.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use zbus::message::Header;

use super::error::{BusError, Name, Result};
use super::options;
use crate::service::core::lock;

/// Calls of one caller. It may connect again and again, but the bus limits how often one user can.
const MOST: usize = 8;

/// Callers, by their unique name, with the number of their calls that wait.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    waiting: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// A call that waits, as long as this value lives.
#[derive(Debug)]
pub struct Turn {
    caller: String,
    turns: Turns,
}

impl Turns {
    /// Counts a call in, or refuses it because its caller has too many, or because it is one that would lie in memory meanwhile.
    pub fn take(&self, call: &Header<'_>) -> Result<Turn> {
        if call.primary().body_len() as usize > options::MOST {
            return Err(BusError::new(Name::LimitExceeded, "what is asked for is too long"));
        }
        self.of(call.sender().map(ToString::to_string).unwrap_or_default())
    }

    fn of(&self, caller: String) -> Result<Turn> {
        let mut waiting = lock(&self.waiting);
        let number = waiting.entry(caller.clone()).or_default();
        if *number >= MOST {
            return Err(BusError::new(
                Name::LimitExceeded,
                format!("{MOST} of your calls are waiting already"),
            ));
        }
        *number += 1;
        Ok(Turn { caller, turns: self.clone() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = lock(&self.turns.waiting);
        if let Some(number) = waiting.get_mut(&self.caller) {
            *number -= 1;
            if *number == 0 {
                waiting.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_turns_and_gets_them_back() {
        let all = Turns::default();
        let of = |caller: &str| all.of(caller.to_owned());
        let turns: Vec<Turn> = (0..MOST).map(|_| of(":1.1").unwrap()).collect();
        assert_eq!(of(":1.1").unwrap_err().name, Name::LimitExceeded);
        // Another one has turns of its own.
        drop(of(":1.2").unwrap());
        drop(turns);
        assert!(of(":1.1").is_ok());
        assert!(lock(&all.waiting).is_empty(), "nobody is forgotten there");
    }
}
