//! Operations on the bus: each becomes a change of the configuration, which `reconcile` applies.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use zbus::{OwnedObjectPath, Variant};

use super::blocking;
use super::bus::options::{LONGEST, Options, invalid, none, only_force, texts};
use super::core::Core;
use super::error::{Error, ErrorKind, Result};
use super::handle::Handle;
use super::overlay::{edit, is_transient, switched_off, text_of};
use super::planned::must_accept_values;
use super::reconcile::{Goal, Wish, must_be_without_mistakes, propose, reconcile, told};
use super::request::Caller;
use engine::device::control;
use host::linux::LinuxHost;
use logic::change::Change;
use logic::config::lasting::must_not_need_root;
use logic::following::Follower;
use logic::overlay::{Command, ENABLED, Overlay};
use logic::proc::device_number;
use logic::record::Target;
use logic::view::Proposal;

/// N of `zramN` or `/dev/zramN`.
fn number_of(name: &str) -> Result<u32> {
    device_number(name)
        .ok_or_else(|| invalid(format!("{name:?} is no zram device; write for example `zram0`")))
}

/// A value of a configuration key, as it came from the bus.
pub(super) fn assign(overlay: &mut Overlay, key: &str, value: &Variant<'_>) -> Result<()> {
    // The key is written into a file verbatim.
    if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') || key.is_empty() {
        return Err(invalid(format!("unknown key {key:?}")));
    }
    match value {
        Variant::Str(text) if text.len() <= LONGEST => overlay.set_text(key, text.as_str()),
        Variant::Str(_) => return Err(invalid(format!("`{key}` is longer than {LONGEST} bytes"))),
        // Sizes on the bus are in bytes.
        Variant::U64(bytes) => overlay.set_bytes(key, *bytes),
        Variant::I32(number) => overlay.set_number(key, i64::from(*number)),
        Variant::I64(number) => overlay.set_number(key, *number),
        Variant::U32(number) => overlay.set_number(key, i64::from(*number)),
        Variant::Bool(value) => overlay.set(key, value.to_string()),
        Variant::F64(number) if number.is_finite() => {
            // With a decimal point, so that TOML reads a float.
            overlay.set(key, format!("{number:?}"));
        }
        Variant::Array(words) => overlay.set_list(key, &texts(key, words)?),
        _ => {
            return Err(invalid(format!(
                "`{key}` is a string, a number of bytes (type t), or a list of strings"
            )));
        }
    }
    Ok(())
}

impl Core {
    /// The changes that a reload would make.
    pub async fn planned(self: &Arc<Self>, options: &Options) -> Result<Vec<Change>> {
        let forced = only_force(options)?;
        Ok(propose(self, &Wish::everything(forced)).await?.changes)
    }

    /// Reads and applies the configuration.
    pub async fn reload(self: &Arc<Self>, options: &Options) -> Result<OwnedObjectPath> {
        let wish = Wish::everything(only_force(options)?);
        let planned = wish.clone();
        let plan = move |core: Arc<Core>| {
            let wish = planned.clone();
            async move { propose(&core, &wish).await }
        };
        let planned = self.plan_first(plan).await?;
        self.start("reload", String::new(), async move |core, handle| {
            planned.carry_out(&core, &handle, wish).await
        })
        .await
    }

    /// Creates a device that lasts until the next boot. Returns its name once it is in use.
    pub async fn create(self: &Arc<Self>, options: &Options, caller: Caller) -> Result<String> {
        let mut overlay = Overlay { transient: true, ..Overlay::default() };
        let mut wanted = None;
        for (key, value) in options.iter() {
            match (key.as_str(), &**value) {
                ("name", Variant::Str(name)) => wanted = Some(number_of(name.as_str())?),
                ("name", _) => return Err(invalid("`name` is a string, for example zram5")),
                (key, value) => assign(&mut overlay, key, value)?,
            }
        }
        if caller == Caller::User {
            let keys = overlay.values.iter();
            must_not_need_root("zram0", keys.map(|(key, assigned)| (&**key, &*assigned.value)))?;
        }
        let _guard = self.wait_for_changes().await?;
        // The sections in force, and those that the plan finds in changed files.
        let mut sections = self.view().sections.clone();
        let (section, wish, proposal) = loop {
            let number = match wanted {
                Some(number) => number,
                None => {
                    let sections = sections.clone();
                    blocking::run(move || {
                        let configured = |number: u32| sections.contains_key(&format!("zram{number}"));
                        control::free_number(&LinuxHost::new("/"), configured)
                    })
                    .await?
                }
            };
            let section = format!("zram{number}");
            if let Some(file) = sections.get(&section) {
                let message = format!("[{section}] is configured already, in {file}");
                return Err(invalid(format!(
                    "{message}; change it there, or run `zramdctl resize {section} SIZE`"
                )));
            }
            let edit = edit(&section, Some(Command::Create), |new| *new = overlay.clone())?;
            let goal = Wish { goal: Goal::Create, ..Wish::one(Target::Device(number), false) };
            let wish = Wish { edit: Some(edit.clone()), ..goal };
            let proposal = propose(self, &wish).await?;
            if proposal.view.sections.get(&section).is_none_or(|file| *file == edit.path) {
                break (section, wish, proposal);
            }
            sections.clone_from(&proposal.view.sections);
        };
        reconcile(self, &Handle::unwatched(), wish, Some(Box::new(proposal))).await?;
        Ok(section)
    }

    /// Removes a device; a configured one until the next boot.
    pub async fn remove(self: &Arc<Self>, name: &str, options: &Options) -> Result<OwnedObjectPath> {
        let forced = only_force(options)?;
        let number = match self.ours(name).await {
            // The device is off, only its runtime section is left.
            Err(error) if error.kind == ErrorKind::NotFound && is_transient(number_of(name)?) => {
                number_of(name)?
            }
            other => other?,
        };
        self.start("remove", format!("zram{number}"), move |core, handle| async move {
            core.switch_off(&handle, number, forced, Command::Remove).await
        })
        .await
    }

    /// Disables the section of a device, which removes the device. `Command::Remove` also deletes a section that was created
    /// at runtime.
    async fn switch_off(
        self: &Arc<Self>,
        handle: &Handle,
        number: u32,
        forced: bool,
        command: Command,
    ) -> Result<String> {
        let section = format!("zram{number}");
        let mut forget = false;
        let wish = Wish::gone(Target::Device(number), forced);
        with_overlay(self, handle, &section, wish, Some(command), |overlay| {
            forget = command == Command::Remove && overlay.transient;
            if forget {
                overlay.values.clear();
            } else {
                overlay.set(ENABLED, "false");
            }
        })
        .await?;
        // The message below has more detail.
        handle.outcomes(Vec::new());
        // A device that existed before zramd used it is not removed.
        let left = Path::new("/sys/block").join(&section).exists();
        Ok(if forget {
            format!("{section} is {}", if left { "no longer in use" } else { "gone" })
        } else {
            format!("{section} is off until the next boot, or until it is activated; its memory is free")
        })
    }

    /// Changes the size of a device until the next boot.
    pub async fn resize(
        self: &Arc<Self>,
        name: &str,
        bytes: u64,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        let forced = only_force(options)?;
        let number = self.ours(name).await?;
        if bytes == 0 {
            return Err(invalid("the size must not be 0; use RemoveDevice"));
        }
        let section = format!("zram{number}");
        let wish = Wish::one(Target::Device(number), forced);
        let plan = with_overlay_planned(section.clone(), wish.clone(), Command::Resize, move |overlay| {
            overlay.set_bytes("zram-size", bytes);
            overlay.set_bytes("max-zram-size", bytes);
        });
        let planned = self.plan_first(plan).await?;
        self.start("resize", section, async move |core, handle| planned.carry_out(&core, &handle, wish).await)
            .await
    }

    /// Limits the memory of a device until the next boot.
    pub async fn set_memory_limit(self: &Arc<Self>, name: &str, bytes: u64) -> Result<()> {
        let number = self.ours(name).await?;
        let _guard = self.wait_for_changes().await?;
        let wish = Wish::one(Target::Device(number), false);
        let (section, command) = (format!("zram{number}"), Some(Command::Limit));
        let change = |overlay: &mut Overlay| overlay.set_bytes("zram-resident-limit", bytes);
        with_overlay(self, &Handle::unwatched(), &section, wish, command, change).await?;
        Ok(())
    }

    /// Compacts a device.
    pub async fn compact(self: &Arc<Self>, name: &str) -> Result<()> {
        let number = self.ours(name).await?;
        let _guard = self.wait_for_changes().await?;
        blocking::run(move || control::compact(&mut LinuxHost::new("/"), number)).await
    }

    /// Resets the peak of a device.
    pub async fn reset_peak(self: &Arc<Self>, name: &str) -> Result<()> {
        let number = self.ours(name).await?;
        let _guard = self.wait_for_changes().await?;
        blocking::run(move || control::reset_peak(&mut LinuxHost::new("/"), number)).await
    }

    /// Activates a device that was switched off.
    pub async fn activate(self: &Arc<Self>, name: &str, options: &Options) -> Result<OwnedObjectPath> {
        none(options)?;
        let number = number_of(name)?;
        self.start("activate", format!("zram{number}"), move |core, handle| async move {
            let wish = Wish::one(Target::Device(number), false);
            let section = format!("zram{number}");
            let done = with_overlay(&core, &handle, &section, wish, None, |overlay| {
                overlay.values.remove(ENABLED);
            });
            match done.await {
                // "Set up by another program" is more specific than "not configured".
                Err(error) if error.kind == ErrorKind::NotFound => match set_up_by_us(number).await {
                    Err(foreign) if foreign.kind == ErrorKind::Unmanaged => Err(foreign),
                    _ => Err(error),
                },
                done => done,
            }
        })
        .await
    }

    /// Deactivates a device and frees its memory.
    pub async fn deactivate(self: &Arc<Self>, name: &str, options: &Options) -> Result<OwnedObjectPath> {
        none(options)?;
        let number = self.ours(name).await?;
        self.start("deactivate", format!("zram{number}"), move |core, handle| async move {
            core.switch_off(&handle, number, false, Command::SwapOff).await
        })
        .await
    }

    /// Recreates swaps whose algorithm differs from the verdict of the benchmark, if they are nearly empty, and sets the swappiness that it
    /// suggests.
    pub async fn adopt(self: &Arc<Self>, options: &Options) -> Result<OwnedObjectPath> {
        none(options)?;
        self.start("adopt", String::new(), async |core, handle| {
            let mut proposal = propose(&core, &Wish::everything(false)).await?;
            proposal.changes.retain(|change| change.by_verdict);
            if proposal.changes.is_empty() {
                return Ok(told(None));
            }
            let only = proposal.changes.iter().map(|change| change.target.clone()).collect();
            let wish = Wish { only: Some(only), ..Wish::everything(false) };
            reconcile(&core, &handle, wish, Some(Box::new(proposal))).await.map(told)
        })
        .await
    }

    /// Whether [`Core::adopt`] has something to do.
    pub async fn can_adopt(&self) -> bool {
        let proposal = propose(self, &Wish::everything(false)).await;
        proposal.is_ok_and(|proposal| proposal.changes.iter().any(|change| change.by_verdict))
    }

    /// What the configured devices have to do with the verdict of the benchmark.
    pub async fn followers(&self) -> Result<Vec<Follower>> {
        Ok(propose(self, &Wish::everything(false)).await?.followers)
    }

    /// Removes the runtime section of a device or RAM disk, and applies the configuration to it.
    pub async fn unset_override(self: &Arc<Self>, name: &str, options: &Options) -> Result<OwnedObjectPath> {
        let forced = only_force(options)?;
        let target = match device_number(name) {
            Some(number) => Target::Device(number),
            None => Target::Ramdisk(name.strip_prefix("ramdisk.").unwrap_or(name).to_owned()),
        };
        let section = target.to_string();
        // The section becomes part of a file name.
        if section.contains('/') || text_of(&section).is_none() {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no override of {name:?}")));
        }
        self.start("unset", section.clone(), move |core, handle| async move {
            let wish = Wish { goal: Goal::Follow, ..Wish::one(target, forced) };
            with_overlay(&core, &handle, &section, wish, None, |overlay| overlay.values.clear()).await
        })
        .await
    }

    /// The number of a device, if zramd set it up.
    pub(super) async fn ours(self: &Arc<Self>, name: &str) -> Result<u32> {
        let number = number_of(name)?;
        let found = set_up_by_us(number).await;
        found.map(|()| number).map_err(|error| switched_off(number).unwrap_or(error))
    }
}

async fn set_up_by_us(number: u32) -> Result<()> {
    blocking::run(move || control::must_be_ours(&LinuxHost::new("/"), number)).await
}

/// Changes the runtime section and applies it.
pub(super) async fn with_overlay(
    core: &Arc<Core>,
    handle: &Handle,
    section: &str,
    wish: Wish,
    command: Option<Command>,
    change: impl FnOnce(&mut Overlay),
) -> Result<String> {
    let edit = Some(edit(section, command, change)?);
    reconcile(core, handle, Wish { edit, ..wish }, None).await.map(told)
}

/// A plan that changes the runtime section. Its edit is part of it, and mistakes in the section are errors.
pub(super) fn with_overlay_planned(
    section: String,
    wish: Wish,
    command: Command,
    change: impl Fn(&mut Overlay),
) -> impl Fn(Arc<Core>) -> Pin<Box<dyn Future<Output = Result<Proposal>> + Send>> {
    move |core| {
        let (section, wish) = (section.clone(), wish.clone());
        let edit = edit(&section, Some(command), &change);
        Box::pin(async move {
            let edit = edit?;
            let proposal = propose(&core, &Wish { edit: Some(edit.clone()), ..wish }).await?;
            must_be_without_mistakes(&section, &edit.path, &proposal.view)?;
            must_accept_values(&proposal)?;
            Ok(Proposal { edit: Some(edit), ..proposal })
        })
    }
}
