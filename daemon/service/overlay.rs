//! Runtime sections: overrides until the next boot.

use std::path::Path;

use super::error::{Error, ErrorKind};
use host::linux::files;
use logic::overlay::{ENABLED, Overlay, file_name};

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
    files::read_overlay(Path::new("/"), &file_name(section))
}

/// Whether the section of a device exists only at runtime.
pub fn is_transient(number: u32) -> bool {
    text_of(&format!("zram{number}")).is_some_and(|text| Overlay::parse(&text).transient)
}

/// The text of a runtime section; `None` if it is empty.
pub fn drop_in(section: &str, overlay: &Overlay) -> Option<String> {
    (!overlay.values.is_empty()).then(|| overlay.text(section))
}
