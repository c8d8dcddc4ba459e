//! Operations on RAM disks: `zramd-worker` does the work, PID 1 unmounts and mounts them.

pub(crate) mod space;

use std::sync::Arc;

use zbus::OwnedObjectPath;

use super::bus::options::{Options, invalid, none, only_force};
use super::claims::of_ramdisk;
use super::core::{Core, Mode};
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::job::Subject;
use super::operations::with_overlay_planned;
use super::reconcile::{Wish, reconcile};
use super::systemd::{Systemd, Verb};
use super::work::Call;
use logic::order::{self, Order};
use logic::overlay::{Command, Overlay};
use logic::proc::zram_number;
use logic::ramdisk::SaveReason;
use logic::record::Target;
use logic::sample::RamdiskView;
use logic::unit::ramdisk::{doing_unit, place_unit, saving_unit};
use logic::unit::setup_unit;
use logic::unit_name::escape_path;

fn call(order: Order) -> Call {
    let name = order.ramdisk().map_or("", |disk| &disk.name);
    let unit = doing_unit(name);
    // Not for other users, whose saves replace only their own.
    let is_of_root = matches!(&order, Order::Save(disk) if disk.reason == SaveReason::Asked);
    let without_order = is_of_root.then(|| saving_unit(name));
    Call { order, unit, without_order }
}

impl Core {
    async fn kept_ramdisk(self: &Arc<Self>, name: &str) -> Result<RamdiskView> {
        let snapshot = self.sample().await;
        let disk = snapshot.ramdisk(name);
        let disk =
            disk.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no RAM disk {name:?}")))?;
        if !disk.is_kept() {
            let message = format!("{name}: its contents are not kept (persist = \"none\")");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(disk.clone())
    }

    /// Runs `zramd-worker` on a persistent RAM disk.
    pub async fn work_on_ramdisk(
        self: &Arc<Self>,
        verb: &'static str,
        order: Order,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        none(options)?;
        let name = order.ramdisk().map_or("", |disk| &disk.name).to_owned();
        self.kept_ramdisk(&name).await?;
        self.start_work(verb, Subject::disk(&name), call(order)).await
    }

    /// Restores a RAM disk from a snapshot. Reading one takes long, so this runs in parallel to other changes.
    pub async fn restore_ramdisk(
        self: &Arc<Self>,
        name: &str,
        snapshot: Option<u64>,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        none(options)?;
        let disk = self.kept_ramdisk(name).await?;
        self.start_beside("restore", Subject::disk(name), move |core, handle| async move {
            // A save of another user must not prevent it.
            let handle = handle.after_others(&core.claims, &of_ramdisk(&disk.name)).await?;
            let prepare = Order::PrepareRestore(order::RamdiskOrder {
                snapshot,
                ..order::RamdiskOrder::named(&disk.name)
            });
            core.work(&handle, call(prepare)).await?;
            match core.mode {
                Mode::Systemd => core.remount(&handle, &disk).await?,
                Mode::Direct => core.take_down_and_up(&handle, &disk).await?,
            }
            handle.outcomes(Vec::new());
            core.publish_changes().await;
            let status = core.latest().ramdisk(&disk.name).map(|disk| disk.status.load_message.clone());
            Ok(format!("{}: {}", disk.name, status.unwrap_or_default()))
        })
        .await
    }

    async fn remount(self: &Arc<Self>, handle: &Handle, disk: &RamdiskView) -> Result<()> {
        let connection = self.connection().ok_or_else(|| Error::new(ErrorKind::Failed, "there is no bus"))?;
        let pid_1 = Systemd::enter(&connection).await?;
        let target = Target::Ramdisk(disk.name.clone());
        let shown = format!("{}.mount", escape_path(&disk.mount_point));
        // Services that require the mount stop with it, and are started again afterwards.
        let users = pid_1.stopping_with(&shown).await;
        let result = async {
            pid_1.unit(Verb::Stop, &shown, &target, handle).await?;
            let mut hidden = pid_1.unit(Verb::Stop, &place_unit(&disk.name), &target, handle).await;
            // The device is removed, but only after its file system cannot be mounted again with its contents.
            if let (Ok(()), Some(number)) = (&hidden, zram_number(&disk.device)) {
                hidden = pid_1.unit(Verb::Stop, &setup_unit(number), &target, handle).await;
            }
            hidden.and(pid_1.unit(Verb::Start, &shown, &target, handle).await)
        };
        let result = result.await;
        let result = match result {
            Ok(()) => Ok(()),
            Err(error) => Err(self.give_up_restore(handle, &disk.name, error).await),
        };
        if result.is_err() {
            // Best effort: restores the previous state.
            pid_1.job(Verb::Start, &shown, None, &Handle::unwatched()).await.ok();
        }
        for user in users {
            pid_1.job(Verb::Start, &user, None, &Handle::unwatched()).await.ok();
        }
        pid_1.leave().await;
        result
    }

    async fn take_down_and_up(self: &Arc<Self>, handle: &Handle, disk: &RamdiskView) -> Result<()> {
        let mut targets = vec![Target::Ramdisk(disk.name.clone())];
        // The file system is removed with its device.
        targets.extend(zram_number(&disk.device).map(Target::Device));
        let wish = Wish { only: Some(targets.iter().cloned().collect()), ..Wish::everything(false) };
        let _guard = self.change_lock.lock().await;
        let result = async {
            for target in &targets {
                self.source.ask::<bool>(&["take-down", &target.to_string()], &handle.cancel).await?;
            }
            reconcile(self, handle, wish.clone(), None).await
        };
        let Err(error) = result.await else { return Ok(()) };
        let error = self.give_up_restore(handle, &disk.name, error).await;
        // Best effort: restores the previous state.
        reconcile(self, &handle.quietly(), wish, None).await.ok();
        Err(error)
    }

    /// Makes the next load take the newest snapshot, which was just saved. Returns an error that names the users of the
    /// disk, or else `error`.
    async fn give_up_restore(self: &Arc<Self>, handle: &Handle, name: &str, error: Error) -> Error {
        let cancel = call(Order::CancelRestore(order::RamdiskOrder::named(name)));
        match self.work(&handle.quietly(), cancel).await {
            Err(blame) if blame.kind == ErrorKind::InUse => blame,
            _ => error,
        }
    }

    /// Changes the size of a RAM disk until the next boot.
    pub async fn resize_ramdisk(
        self: &Arc<Self>,
        name: &str,
        bytes: u64,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        let forced = only_force(options)?;
        if bytes == 0 {
            return Err(invalid("the size must not be 0"));
        }
        if self.sample().await.ramdisk(name).is_some_and(|disk| !disk.device.is_empty()) {
            let message = format!(
                "{name} is on zram, whose size cannot change while in use: change size of [ramdisk.{name}] and reboot"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let target = Target::Ramdisk(name.to_owned());
        let (section, wish) = (target.to_string(), Wish::one(target, forced));
        let change = move |overlay: &mut Overlay| overlay.set_bytes("size", bytes);
        let plan = with_overlay_planned(section, wish.clone(), Command::RamdiskResize, change);
        let planned = self.plan_first(plan).await?;
        let work = async move |core: Arc<Core>, handle: Handle| planned.carry_out(&core, &handle, wish).await;
        self.start("resize", Subject::disk(name), work).await
    }
}
