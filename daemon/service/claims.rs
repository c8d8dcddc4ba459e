//! Exclusive work: prevents that the same work is done twice at the same time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::error::{Error, ErrorKind, Result};
use super::lock::lock;

/// Work in progress, by name: `benchmark`, `maintenance`, `ramdisk-NAME`.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    names: Arc<Mutex<BTreeSet<String>>>,
    ended: Arc<Notify>,
}

/// Work in progress; ends when it is dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    name: String,
}

/// Name of work on a RAM disk.
pub fn of_ramdisk(name: &str) -> String {
    format!("ramdisk-{name}")
}

impl Claims {
    /// Whether work of this name is in progress.
    pub fn has(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// Claims a name until the claim is dropped. If it is claimed already, this fails at once instead of waiting: the work
    /// in progress may take long, and may make the new one unnecessary.
    pub fn claim(&self, name: &str) -> Result<Arc<Claim>> {
        if lock(&self.names).insert(name.to_owned()) {
            return Ok(Arc::new(Claim { claims: self.clone(), name: name.to_owned() }));
        }
        let what = match name.strip_prefix("ramdisk-") {
            Some(disk) => format!("work on ramdisk.{disk}"),
            None => name.to_owned(),
        };
        Err(Error::new(ErrorKind::Busy, format!("{what} is already in progress")))
    }

    /// Claims a name, after the work in progress.
    pub async fn wait(&self, name: &str) -> Arc<Claim> {
        loop {
            let ended = self.ended.notified();
            if let Ok(claim) = self.claim(name) {
                return claim;
            }
            ended.await;
        }
    }
}

impl Claim {
    /// Whether the claim has this name.
    pub fn is_for(&self, name: &str) -> bool {
        self.name == name
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.claims.names).remove(&self.name);
        self.claims.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let claims = Claims::default();
            let save = claims.claim("ramdisk-logs").unwrap();
            let restore = tokio::spawn({
                let claims = claims.clone();
                async move { claims.wait("ramdisk-logs").await }
            });
            tokio::task::yield_now().await;
            assert!(!restore.is_finished());
            // Work on other RAM disks does not wait.
            drop(claims.claim("ramdisk-other").unwrap());
            tokio::task::yield_now().await;
            assert!(!restore.is_finished());
            drop(save);
            let claim = restore.await.unwrap();
            assert!(claim.is_for("ramdisk-logs") && claims.claim("ramdisk-logs").is_err());
        });
    }
}
