//! Replaced letters in all texts for people, for a test: see [`logic::text`].

/// Replaces them when `ZRAMD_REPLACE_LETTERS` is set. Every program calls it first; in release builds it does nothing.
pub fn begin() {
    #[cfg(debug_assertions)]
    if std::env::var_os("ZRAMD_REPLACE_LETTERS").is_some() {
        logic::text::replace_letters();
    }
}
