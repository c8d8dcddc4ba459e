//! Runtime sections: overrides until the next boot.

use std::path::Path;

use super::error::{Error, ErrorKind, Result};
use host::linux::edit::read;
use logic::config::edit::Edit;
use logic::overlay::{self, Command, ENABLED, Overlay};

/// The error for an operation on a device that is switched off until the next boot; `None` if it is not.
pub fn switched_off(number: u32) -> Option<Error> {
    let name = format!("zram{number}");
    let overlay = Overlay::parse(&text_of(&name)?);
    overlay.values.get(ENABLED).filter(|assigned| assigned.value == "false")?;
    // A device that was created at runtime has no configuration to return to.
    let command = if overlay.transient { "swap on" } else { "unset --runtime" };
    let message =
        format!("{name} is switched off until the next boot; `zramdctl {command} {name}` switches it on");
    Some(Error::new(ErrorKind::NotFound, message))
}

/// The text of a runtime section.
pub fn text_of(section: &str) -> Option<String> {
    read(Path::new("/"), &overlay::path(section)).ok().flatten()
}

/// Whether the section of a device exists only at runtime.
pub fn is_transient(number: u32) -> bool {
    text_of(&format!("zram{number}")).is_some_and(|text| Overlay::parse(&text).transient)
}

/// The edit of a runtime section; `command` is recorded for the keys that it changes.
pub fn edit(section: &str, command: Option<Command>, change: impl FnOnce(&mut Overlay)) -> Result<Edit> {
    let path = overlay::path(section);
    let before = read(Path::new("/"), &path)?;
    let old = before.as_deref().map(Overlay::parse).unwrap_or_default();
    let mut new = old.clone();
    change(&mut new);
    if let Some(command) = command {
        new.record(&old, command);
    }
    let after = (!new.values.is_empty()).then(|| new.text(section));
    Ok(Edit { path, before, after })
}
