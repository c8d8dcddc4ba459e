//! `Configure`: changes of sizes, algorithms, priorities and limits that last, or hold until the next boot.

use std::collections::BTreeMap;
use std::sync::Arc;

use zbus::{OwnedObjectPath, Variant};

use super::bus::error::{Error, ErrorKind, Result};
use super::bus::options::{Options, Sections, invalid};
use super::core::Core;
use super::operations::{assign, with_overlay};
use super::reconcile::{Wish, With, must_be_without_mistakes, propose_with, reconcile};
use logic::config::lasting::{Changes, FILE, check, check_value};
use logic::overlay::{Assigned, Command, Overlay};
use logic::record::Target;

/// `force` and `runtime`.
fn switches(options: &Options) -> Result<(bool, bool)> {
    let (mut forced, mut runtime) = (false, false);
    for (name, value) in options.iter() {
        match (name.as_str(), &**value) {
            ("force", Variant::Bool(value)) => forced = *value,
            ("runtime", Variant::Bool(value)) => runtime = *value,
            ("force" | "runtime", _) => return Err(invalid(format!("the option `{name}` is true or false"))),
            _ => return Err(invalid(format!("there is no option `{name}` here; use `force` or `runtime`"))),
        }
    }
    Ok((forced, runtime))
}

/// The changes with TOML values; an empty string removes a key.
fn changes(sections: &Sections) -> Result<Changes> {
    let mut changes = Changes::new();
    for (section, keys) in sections.iter() {
        let mut assigned = Overlay::default();
        let mut new = BTreeMap::new();
        for (key, value) in keys.iter() {
            check(section, key)?;
            match &**value {
                Variant::Str(text) if text.is_empty() => {
                    new.insert(key.clone(), None);
                }
                value => assign(&mut assigned, key, value)?,
            }
        }
        for (key, Assigned { value, .. }) in assigned.values {
            check_value(section, &key, &value)?;
            new.insert(key, Some(value));
        }
        if !new.is_empty() {
            changes.insert(section.clone(), new);
        }
    }
    if changes.is_empty() {
        return Err(invalid("no key is given, so there is nothing to change"));
    }
    Ok(changes)
}

impl Core {
    /// Changes the configuration and applies it. Nothing is written that cannot be applied.
    pub async fn configure(
        self: &Arc<Self>,
        sections: &Sections,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        let (forced, runtime) = switches(options)?;
        let changes = changes(sections)?;
        // `[defaults]` changes every device.
        let only = changes.keys().map(|section| Target::of_section(section)).collect();
        let object = changes.keys().next().filter(|_| changes.len() == 1).cloned().unwrap_or_default();
        let wish = Wish { only, unset: true, ..Wish::everything(forced) };
        if runtime {
            return self.configure_until_boot(changes, wish).await;
        }
        let set = serde_json::to_string(&changes)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("write JSON: {error}")))?;
        self.start("configure", object, move |core, handle| async move {
            let proposal = propose_with(&core, &wish, Some(&set)).await?;
            for section in changes.keys() {
                must_be_without_mistakes(section, FILE, &proposal.view)?;
            }
            let wish = Wish { lasting: proposal.lasting.clone(), ..wish };
            reconcile(&core, &handle, wish, With::Proposal(Box::new(proposal))).await
        })
        .await
    }

    async fn configure_until_boot(self: &Arc<Self>, changes: Changes, wish: Wish) -> Result<OwnedObjectPath> {
        let Some((section, Some(target))) =
            changes.first_key_value().map(|(section, _)| (section.clone(), Target::of_section(section)))
        else {
            return Err(invalid("`runtime` is for the section of a device or RAM disk"));
        };
        if changes.len() > 1 {
            return Err(invalid("`runtime` is for one section per call"));
        }
        let wish = Wish::one(target, wish.forced);
        self.start("configure", section.clone(), move |core, handle| async move {
            with_overlay(&core, &handle, &section, wish, Some(Command::Set), |overlay| {
                for (key, value) in changes.into_values().flatten() {
                    match value {
                        Some(value) => overlay.set(&key, value),
                        None => drop(overlay.values.remove(&key)),
                    }
                }
            })
            .await
        })
        .await
    }
}
