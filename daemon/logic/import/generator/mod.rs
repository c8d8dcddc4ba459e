//! zram-generator.

mod size;

use super::ini::{self, Setting};
