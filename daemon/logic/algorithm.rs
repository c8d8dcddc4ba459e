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
