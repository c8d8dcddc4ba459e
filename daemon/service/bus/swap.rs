//! `org.zramd1.Swap`: a device that is, or can be, swap.

use std::sync::Arc;

use zbus::message::Header;
use zbus::{Connection, OwnedObjectPath, interface};

use super::options::Options;
use super::table::Object;
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
}

impl Object for Swap {
    type State = Option<SwapView>;

    async fn state(&self) -> Option<SwapView> {
        self.core.sample().await.device(&self.name).and_then(|device| device.swap)
    }
}

/// Swap on a zram device.
#[interface(name = "org.zramd1.Swap")]
impl Swap {
    /// Switches it on. There are no options yet.
    #[zbus(out_args("job"))]
    async fn activate(
        &self,
        options: Options,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] call: Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Manage).await?;
        request.run(self.core.activate(&self.name, &options)).await
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
        let request = auth::check(&self.core.call_limits, connection, &call, Action::Manage).await?;
        request.run(self.core.deactivate(&self.name, &options)).await
    }
}
