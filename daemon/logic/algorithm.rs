//! Compression algorithms: names and parameters as the kernel takes them.

use serde::{Deserialize, Serialize};

/// An algorithm with its parameters.
///
/// Source: Documentation/admin-guide/blockdev/zram.rst, "Select compression algorithm" and "Set compression algorithm
/// parameters".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Algorithm {
    /// Kernel spelling, for example `lzo-rle`.
    pub name: String,
    /// Keys and values for `algorithm_params`, in the order written: `level`, `dict`, `deflate.winbits`.
    pub parameters: Vec<(String, String)>,
}
impl std::fmt::Display for Algorithm { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.name) } }
/// stub
pub fn parse_comp_algorithm(text: &str) -> (Vec<String>, Option<String>) {
 let mut names=Vec::new(); let mut sel=None;
 for w in text.split_whitespace() { if let Some(x)=w.strip_prefix('[') { let x=x.trim_end_matches(']'); sel=Some(x.to_owned()); names.push(x.to_owned()); } else { names.push(w.to_owned()); } }
 (names, sel) }
/// stub
pub fn parse_recomp_algorithm(_text: &str) -> Vec<(u8, String)> { Vec::new() }
