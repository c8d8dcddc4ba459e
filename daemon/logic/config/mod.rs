//! Configuration: TOML text of several files in, [`settings::Settings`] and a list of [`problem::Problem`]s out.
//!
//! Three types for three responsibilities: a *fragment* is what one file says, the *merged* document is what all
//! files say together with the origin of each assignment, and `Settings` is what was meant, validated and typed.
//! Reading never stops at the first problem, and a problem in one section leaves the others usable.

pub mod problem;
pub mod settings;
#[derive(Debug, Clone)]
pub struct Loaded { pub settings: settings::Settings, pub problems: Vec<problem::Problem> }
