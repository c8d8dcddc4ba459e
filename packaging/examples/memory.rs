//! Prints what each zram device saves or loses, then each problem with its remedy. Needs the crates `zbus`, and `tokio` or another runtime.

use zbus::proxy::CacheProperties;
use zbus::{Connection, OwnedObjectPath, proxy};

#[proxy(interface = "org.zramd1.Manager", default_service = "org.zramd1", default_path = "/org/zramd1")]
trait Manager {
    fn list_devices(&self) -> zbus::Result<Vec<(String, OwnedObjectPath, String)>>;

    #[zbus(property)]
    fn problem_details(&self) -> zbus::Result<Vec<(String, String, String, String, String)>>;
}

#[proxy(interface = "org.zramd1.Device", default_service = "org.zramd1")]
trait Device {
    #[zbus(property(emits_changed_signal = "false"))]
    fn saved_bytes(&self) -> zbus::Result<u64>;

    #[zbus(property(emits_changed_signal = "false"))]
    fn loss_bytes(&self) -> zbus::Result<u64>;
}

/// The text, with values from this bus.
pub async fn memory(bus: &Connection) -> zbus::Result<String> {
    let manager = ManagerProxy::new(bus).await?;
    let mut text = String::new();
    for (name, path, _state) in manager.list_devices().await? {
        let device =
            DeviceProxy::builder(bus).path(path).cache_properties(CacheProperties::No).build().await?;
        let (saved, lost) = (device.saved_bytes().await?, device.loss_bytes().await?);
        text += &format!("{name}: {saved} bytes saved, {lost} lost\n");
    }
    for (level, _code, _object, message, remedy) in manager.problem_details().await? {
        text += &format!("{level}: {message} ({remedy})\n");
    }
    Ok(text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> zbus::Result<()> {
    print!("{}", memory(&Connection::system().await?).await?);
    Ok(())
}
