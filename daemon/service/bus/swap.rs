//! `org.zramd1.Swap`: a device that is, or can be, swap.

use std::sync::Arc;

use zbus::message::Header;
use zbus::{Connection, OwnedObjectPath, interface};

use super::options::Options;
use crate::auth::{self, Action};
use crate::core::Core;
use crate::error::Result;
use logic::sample::SwapView;

/// The swap on one device.
#[derive(Debug)]
pub struct Swap {
    core: Arc<Core>,
    name: String,
}

impl Swap {
    pub(crate) fn new(core: Arc<Core>, name: String) -> Swap {
        Swap { core, name }
    }

    async fn view(&self) -> Option<SwapView> {
        self.core.sample().await.device(&self.name).and_then(|device| device.swap)
    }
}

/// Swap on a zram device.
#[interface(name = "org.zramd1.Swap")]
impl Swap {
    /// Whether it is switched on.
    #[zbus(property)]
    async fn active(&self) -> bool {
        self.view().await.is_some()
    }

    /// Its priority; higher is used first. −1 while it is off.
    #[zbus(property)]
    async fn priority(&self) -> i32 {
        self.view().await.map_or(-1, |swap| swap.priority)
    }

    /// Swap slots in use, in bytes. Not equal to OriginalDataBytes: a page that was read back keeps its slot, and one
    /// that was freed is discarded later.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn used_bytes(&self) -> u64 {
        self.view().await.map_or(0, |swap| swap.used_bytes)
    }

    /// Bytes that fit.
    #[zbus(property)]
    async fn size_bytes(&self) -> u64 {
        self.view().await.map_or(0, |swap| swap.size_bytes)
    }

    /// Switches it on. There are no options yet.
    #[zbus(out_args("job"))]
    async fn activate(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.activate(&self.name, &options).await?).await
    }

    /// Switches it off until the next boot and gives its memory back, after checking that memory can take what is in it.
    /// The device goes, and with it this object: `ActivateDevice` of the manager brings both back. There are no options yet.
    #[zbus(out_args("job"))]
    async fn deactivate(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        auth::check(&self.core.turns, connection, &call, Action::Manage).await?;
        self.core.owned(&call, self.core.deactivate(&self.name, &options).await?).await
    }
}
