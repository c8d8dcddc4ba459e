//! What is being worked on: the same work is not done twice at the same time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::bus::error::{Error, ErrorKind, Result};
use super::lock::lock;

/// The work that is going on, by name: `benchmark`, `disk-NAME`, `maintenance`.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    names: Arc<Mutex<BTreeSet<String>>>,
}

/// Work that is going on, as long as this value lives.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    name: String,
}

/// Name of the work on a disk.
pub fn of_disk(name: &str) -> String {
    format!("disk-{name}")
}

impl Claims {
    /// Whether it is going on.
    pub fn has(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// Has something to itself until the claim is dropped. What another one works on is refused at once: what it is about
    /// to do takes long, and may make this one pointless.
    pub fn claim(&self, name: &str) -> Result<Arc<Claim>> {
        if lock(&self.names).insert(name.to_owned()) {
            return Ok(Arc::new(Claim { claims: self.clone(), name: name.to_owned() }));
        }
        let what = match name.strip_prefix("disk-") {
            Some(disk) => format!("work on ramdisk.{disk}"),
            None => name.to_owned(),
        };
        Err(Error::new(ErrorKind::Busy, format!("{what} is already in progress")))
    }
}

impl Claim {
    /// Whether it is for the work of this name.
    pub fn is_for(&self, name: &str) -> bool {
        self.name == name
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.claims.names).remove(&self.name);
    }
}
