//! stub
pub fn human(bytes: u64) -> String { format!("{bytes}") }
