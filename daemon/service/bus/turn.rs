//! How many calls of one caller, and of one user, may wait for something at the same time.
//!
//! zbus begins every call at once. One that is answered at once is gone before the next is read; those that wait for polkit or
//! for `zramd-setup` would pile up without end, and asking takes no rights.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zbus::Connection;
use zbus::message::Header;

use super::caller::{name_of, user_of};
use super::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Waiting calls of one connection to the bus.
const MOST: usize = 8;
/// Waiting calls of one user but root, on all connections.
const MOST_OF_USER: usize = 32;

/// How often a user may have a job made that takes no password: each leaves lines in the journal.
const EACH: Duration = Duration::from_secs(5);
/// As many may come at once.
const BURST: u32 = 12;

/// Callers and users, with the number of their calls that wait.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    waiting: Arc<Mutex<BTreeMap<Key, usize>>>,
    /// When each user has used up its share, unless that is past.
    paces: Arc<Mutex<BTreeMap<u32, Instant>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// By its unique name.
    Caller(String),
    User(u32),
}

/// A call that waits, as long as this value lives.
#[derive(Debug)]
pub struct Turn {
    /// The user that calls.
    pub user: u32,
    _places: (Place, Option<Place>),
}

/// One of the places that a caller or user has.
#[derive(Debug)]
struct Place {
    key: Key,
    turns: Turns,
}

impl Turns {
    /// Counts a call in, or refuses it because its caller or user has too many.
    pub async fn take(&self, connection: &Connection, call: &Header<'_>) -> Result<Turn> {
        let caller = name_of(call)?;
        let of_caller = self.place(Key::Caller(caller.clone()), MOST)?;
        let user = user_of(connection, &caller).await?;
        let of_user = (user != 0).then(|| self.place(Key::User(user), MOST_OF_USER)).transpose()?;
        Ok(Turn { user, _places: (of_caller, of_user) })
    }

    /// Counts a job of a user that takes no password, or refuses it because there were too many lately.
    pub fn pace(&self, user: u32, now: Instant) -> Result<()> {
        let mut paces = lock(&self.paces);
        paces.retain(|_, until| *until > now);
        let until = paces.entry(user).or_insert(now);
        if *until > now + EACH * (BURST - 1) {
            let message = format!("more than {BURST} at once, and one in {} s after that", EACH.as_secs());
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        *until += EACH;
        Ok(())
    }

    fn place(&self, key: Key, most: usize) -> Result<Place> {
        let mut waiting = lock(&self.waiting);
        let number = waiting.entry(key.clone()).or_default();
        if *number >= most {
            let message = format!("{most} of your calls are waiting already");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        *number += 1;
        Ok(Place { key, turns: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = lock(&self.turns.waiting);
        if let Some(number) = waiting.get_mut(&self.key) {
            *number -= 1;
            if *number == 0 {
                waiting.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_and_user_has_its_own_places_and_gets_them_back() {
        let all = Turns::default();
        let of = |caller: &str| all.place(Key::Caller(caller.to_owned()), MOST);
        let places: Vec<Place> = (0..MOST).map(|_| of(":1.1").unwrap()).collect();
        assert_eq!(of(":1.1").unwrap_err().kind, ErrorKind::LimitExceeded);
        drop(of(":1.2").unwrap());
        drop(all.place(Key::User(1000), 1).unwrap());
        drop(places);
        assert!(of(":1.1").is_ok());
        assert!(lock(&all.waiting).is_empty());
    }

    #[test]
    fn a_user_has_some_jobs_at_once_and_then_one_now_and_again() {
        let all = Turns::default();
        let begin = Instant::now();
        let number = |now: Instant| (0..100).filter(|_| all.pace(1000, now).is_ok()).count();
        assert_eq!(number(begin), 12);
        assert!(all.pace(1001, begin).is_ok());
        assert_eq!(number(begin + EACH * 2), 2);
        assert_eq!(number(begin + EACH * 1000), 12);
        assert_eq!(lock(&all.paces).len(), 1);
    }
}
