//! Limits of concurrent calls per connection and per user.
//!
//! zbus starts a task for every call. Calls that wait for polkit or `zramd-setup` would accumulate without limit, and any
//! user can make them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zbus::Connection;
use zbus::message::Header;

use super::caller::{name_of, user_of};
use super::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Concurrent calls of one connection.
const MOST: usize = 8;
/// Concurrent calls of one user other than root, over all connections.
const MOST_OF_USER: usize = 32;

/// Minimum average interval between jobs of one user that need no password: each logs several lines.
const EACH: Duration = Duration::from_secs(5);
/// Jobs that may exceed that rate.
const BURST: u32 = 12;

/// Callers and users, with the number of their waiting calls.
#[derive(Debug, Clone, Default)]
pub struct CallLimits {
    waiting: Arc<Mutex<BTreeMap<Key, usize>>>,
    /// When the allowance of each user is used up; past times have no effect.
    paces: Arc<Mutex<Paces>>,
    /// The same for lines in the journal.
    lines: Arc<Mutex<Paces>>,
}

type Paces = BTreeMap<u32, Instant>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// By its unique name.
    Caller(String),
    User(u32),
}

/// A waiting call; counted until it is dropped.
#[derive(Debug)]
pub struct Counted {
    /// The calling user.
    pub user: u32,
    _places: (Place, Option<Place>),
}

/// One count of a caller or user.
#[derive(Debug)]
struct Place {
    key: Key,
    limits: CallLimits,
}

impl CallLimits {
    /// Counts a call, or refuses it because its caller or user has too many.
    pub async fn take(&self, connection: &Connection, call: &Header<'_>) -> Result<Counted> {
        let caller = name_of(call)?;
        let of_caller = self.place(Key::Caller(caller.clone()), MOST)?;
        let user = user_of(connection, &caller).await?;
        let of_user = (user != 0).then(|| self.place(Key::User(user), MOST_OF_USER)).transpose()?;
        Ok(Counted { user, _places: (of_caller, of_user) })
    }

    /// Counts a job of a user that needs no password, or refuses it because of the rate limit.
    pub fn pace(&self, user: u32, now: Instant) -> Result<()> {
        if is_within(&mut lock(&self.paces), user, now) {
            return Ok(());
        }
        let message = format!("more than {BURST} at once, and one in {} s after that", EACH.as_secs());
        Err(Error::new(ErrorKind::LimitExceeded, message))
    }

    /// Whether a line about a request of this user may be written to the journal, which only root may fill.
    pub fn notes(&self, user: u32, now: Instant) -> bool {
        user == 0 || is_within(&mut lock(&self.lines), user, now)
    }

    fn place(&self, key: Key, most: usize) -> Result<Place> {
        let mut waiting = lock(&self.waiting);
        let number = waiting.entry(key.clone()).or_default();
        if *number >= most {
            let message = format!("{most} of your calls are waiting already");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        *number += 1;
        Ok(Place { key, limits: self.clone() })
    }
}

fn is_within(paces: &mut Paces, user: u32, now: Instant) -> bool {
    paces.retain(|_, until| *until > now);
    let until = paces.entry(user).or_insert(now);
    let is_within = *until <= now + EACH * (BURST - 1);
    if is_within {
        *until += EACH;
    }
    is_within
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = lock(&self.limits.waiting);
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
    fn limits_are_per_caller_and_user_and_are_released() {
        let all = CallLimits::default();
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
    fn jobs_of_a_user_have_a_burst_and_a_rate() {
        let all = CallLimits::default();
        let begin = Instant::now();
        let number = |now: Instant| (0..100).filter(|_| all.pace(1000, now).is_ok()).count();
        assert_eq!(number(begin), 12);
        assert!(all.pace(1001, begin).is_ok());
        assert_eq!(number(begin + EACH * 2), 2);
        assert_eq!(number(begin + EACH * 1000), 12);
        assert_eq!(lock(&all.paces).len(), 1);
    }
}
