//! A simulated polkit on a private bus.
// The interface macro uses every argument.
#![allow(clippy::used_underscore_binding)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use zbus::{OwnedVariant, interface};

use crate::support::private_bus::run;

/// Allows some actions, and for others waits for an administrator if interaction is allowed.
#[derive(Debug, Clone)]
pub struct Authority {
    asked: Arc<Mutex<Vec<(String, String, String)>>>,
    /// The details of each check.
    details: Arc<Mutex<Vec<HashMap<String, String>>>>,
    allowed: Arc<Mutex<Vec<String>>>,
    /// One permit is added per password dialog.
    dialogs: Arc<Semaphore>,
    /// One permit is added per dialog that is closed because the question was cancelled.
    closed: Arc<Semaphore>,
    /// The questions of open dialogs.
    open: Arc<Mutex<Vec<String>>>,
}

#[interface(name = "org.freedesktop.PolicyKit1.Authority")]
impl Authority {
    async fn check_authorization(
        &self,
        subject: (String, HashMap<String, OwnedVariant>),
        action: String,
        asked_with: HashMap<String, String>,
        flags: u32,
        cancellation: String,
    ) -> ((bool, bool, HashMap<String, String>),) {
        let (kind, mut details) = subject;
        let name = String::try_from(details.remove("name").unwrap()).unwrap();
        self.asked.lock().unwrap().push((kind, name, action.clone()));
        self.details.lock().unwrap().push(asked_with);
        let is_free = self.allowed.lock().unwrap().contains(&action);
        if !is_free && flags == 1 {
            self.open.lock().unwrap().push(cancellation);
            self.dialogs.add_permits(1);
            // The administrator never answers.
            std::future::pending::<()>().await;
        }
        ((is_free, !is_free, HashMap::new()),)
    }

    fn cancel_check_authorization(&self, cancellation: &str) {
        let mut open = self.open.lock().unwrap();
        let before = open.len();
        open.retain(|question| *question != cancellation);
        self.closed.add_permits(before - open.len());
    }
}

impl Authority {
    /// Starts it on a bus, until the end of the test. It allows `save-ramdisk` and `benchmark`.
    pub fn start(address: &str) -> Authority {
        let none = || Arc::new(Semaphore::new(0));
        let authority = Authority {
            asked: Arc::default(),
            details: Arc::default(),
            allowed: Arc::default(),
            dialogs: none(),
            closed: none(),
            open: Arc::default(),
        };
        authority.allow(&["org.zramd1.save-ramdisk", "org.zramd1.benchmark"]);
        let (address, served) = (address.to_owned(), authority.clone());
        let (ready, begun) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            run(async {
                let connection = zbus::connection::Builder::address(address.as_str())
                    .serve_at("/org/freedesktop/PolicyKit1/Authority", served)
                    .name("org.freedesktop.PolicyKit1")
                    .build();
                let connection = connection.await.unwrap();
                ready.send(()).unwrap();
                connection.closed().await;
            });
        });
        begun.recv().unwrap();
        authority
    }

    /// Allows these actions from now on, and no others.
    pub fn allow(&self, actions: &[&str]) {
        *self.allowed.lock().unwrap() = actions.iter().map(|action| (*action).to_owned()).collect();
    }

    /// Waits for a password dialog.
    pub async fn dialog(&self) {
        self.dialogs.acquire().await.unwrap().forget();
    }

    /// Waits until a dialog is closed.
    pub async fn closed(&self) {
        self.closed.acquire().await.unwrap().forget();
    }

    /// What the prompt of the last check says: the message with its details put in, as polkit does.
    pub fn prompt(&self) -> String {
        let details = self.details.lock().unwrap().last().unwrap().clone();
        assert_eq!(details["polkit.gettext_domain"], "zramd");
        let mut text = details["polkit.message"].clone();
        for (name, value) in &details {
            text = text.replace(&format!("$({name})"), value);
        }
        text
    }

    /// The checks so far: kind of subject, name of the caller, action.
    pub fn asked(&self) -> Vec<(String, String, String)> {
        self.asked.lock().unwrap().clone()
    }
}
