//! `Configure`: changes of sizes, algorithms, priorities and limits that last, or hold until the next boot.

use std::collections::BTreeMap;
use std::sync::Arc;

use zbus::{OwnedObjectPath, Variant};

use super::bus::options::{Options, Sections, invalid};
use super::core::Core;
use super::error::Result;
use super::operations::{assign, with_overlay_planned};
use super::overlay::{edit, text_of};
use super::planned::must_accept_values;
use super::reconcile::{
    Goal, Wish, json, must_be_configured, must_be_valid, must_be_without_mistakes, propose, propose_with,
    view,
};
use super::request::Caller;
use logic::change::Change;
use logic::config::lasting::{self, Changes, FILE, check, check_value, must_not_need_root};
use logic::overlay::{Assigned, Command, ENABLED, Overlay, file_name};
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

/// The changes with TOML values, of keys that may be changed; an empty string removes a key.
fn changes(
    sections: &Sections,
    may_change: impl Fn(&str, &str) -> std::result::Result<(), logic::error::Error>,
) -> Result<Changes> {
    let mut changes = Changes::new();
    for (section, keys) in sections.iter() {
        lasting::keys(section)?;
        let mut assigned = Overlay::default();
        let mut new = BTreeMap::new();
        for (key, value) in keys.iter() {
            may_change(section, key)?;
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

/// The changes until the next boot, of one device or RAM disk.
fn only_one(changes: Changes) -> Result<(String, Target, BTreeMap<String, Option<String>>)> {
    if changes.len() > 1 {
        return Err(invalid("`runtime` is for one section per call"));
    }
    let one = changes.into_iter().next();
    let one =
        one.and_then(|(section, keys)| Target::of_section(&section).map(|target| (section, target, keys)));
    one.ok_or_else(|| invalid("`runtime` is for the section of a device or RAM disk"))
}

/// Assigns the values, and removes keys without one.
fn assign_all(overlay: &mut Overlay, keys: BTreeMap<String, Option<String>>) {
    for (key, value) in keys {
        match value {
            Some(value) => overlay.set(&key, value),
            None => drop(overlay.values.remove(&key)),
        }
    }
}

impl Core {
    /// The changes that `configure` would make with these arguments. With `runtime` also those of `create` and `remove`.
    pub async fn planned_with(
        self: &Arc<Self>,
        sections: &Sections,
        options: &Options,
        caller: Caller,
    ) -> Result<Vec<Change>> {
        let (forced, runtime) = switches(options)?;
        if runtime {
            let changes = changes(sections, |_, _| Ok(()))?;
            for (section, keys) in changes.iter().filter(|_| caller == Caller::User) {
                // A plan looks at the paths in its values. `enabled` is what RemoveDevice assigns.
                let keys = keys.iter().filter(|(key, _)| *key != ENABLED);
                must_not_need_root(
                    section,
                    keys.map(|(key, value)| (&**key, value.as_deref().unwrap_or(""))),
                )?;
            }
            return self.planned_until_boot(changes, forced).await;
        }
        let changes = changes(sections, check)?;
        let only = changes.keys().map(|section| Target::of_section(section)).collect();
        let wish = Wish { only, goal: Goal::Follow, ..Wish::everything(forced) };
        let set = json(&changes)?;
        let proposal = propose_with(self, &wish, &["--set", &set]).await?;
        for section in changes.keys() {
            must_be_without_mistakes(section, FILE, &proposal.view)?;
        }
        must_be_valid(&proposal.view)?;
        Ok(proposal.changes)
    }

    async fn planned_until_boot(self: &Arc<Self>, changes: Changes, forced: bool) -> Result<Vec<Change>> {
        let (section, target, keys) = only_one(changes)?;
        // As `create` does for a device that is not configured.
        let is_new = text_of(&section).is_none() && !view(self).await?.sections.contains_key(&section);
        let gone = keys.get(ENABLED).is_some_and(|value| value.as_deref() == Some("false"));
        let edit = edit(&section, None, |overlay| {
            overlay.transient |= is_new;
            assign_all(overlay, keys);
        })?;
        let wish = Wish { edit: Some(edit), ..Wish::one(target.clone(), forced) };
        let proposal = propose(self, &wish).await?;
        must_be_without_mistakes(&section, &file_name(&section), &proposal.view)?;
        if !gone {
            must_be_configured(&target, &proposal)?;
        }
        Ok(proposal.changes)
    }

    /// Changes the configuration and applies it. Nothing is written that cannot be applied, and wrong values make no job.
    pub async fn configure(
        self: &Arc<Self>,
        sections: &Sections,
        options: &Options,
    ) -> Result<OwnedObjectPath> {
        let (forced, runtime) = switches(options)?;
        let changes = changes(sections, check)?;
        // `[defaults]` changes every device.
        let only = changes.keys().map(|section| Target::of_section(section)).collect();
        let object = changes.keys().next().filter(|_| changes.len() == 1).cloned().unwrap_or_default();
        let wish = Wish { only, goal: Goal::Follow, ..Wish::everything(forced) };
        if runtime {
            return self.configure_until_boot(changes, forced).await;
        }
        let (planned, set) = (wish.clone(), json(&changes)?);
        let sections: Vec<String> = changes.into_keys().collect();
        let plan = move |core: Arc<Core>| {
            let (wish, set, sections) = (planned.clone(), set.clone(), sections.clone());
            async move {
                let proposal = propose_with(&core, &wish, &["--set", &set]).await?;
                for section in &sections {
                    must_be_without_mistakes(section, FILE, &proposal.view)?;
                }
                must_be_valid(&proposal.view)?;
                must_accept_values(&proposal)?;
                Ok(proposal)
            }
        };
        let planned = self.plan_first(plan).await?;
        self.start("configure", object, async move |core, handle| {
            planned.carry_out(&core, &handle, wish).await
        })
        .await
    }

    async fn configure_until_boot(
        self: &Arc<Self>,
        changes: Changes,
        forced: bool,
    ) -> Result<OwnedObjectPath> {
        let (section, target, keys) = only_one(changes)?;
        let wish = Wish::one(target, forced);
        let plan = with_overlay_planned(section.clone(), wish.clone(), Command::Set, move |overlay| {
            assign_all(overlay, keys.clone());
        });
        let planned = self.plan_first(plan).await?;
        self.start("configure", section, async move |core, handle| {
            planned.carry_out(&core, &handle, wish).await
        })
        .await
    }
}
