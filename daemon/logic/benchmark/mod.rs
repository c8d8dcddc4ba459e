//! The benchmark: which algorithm is best for the pages that this machine swaps. Decisions only; `engine/benchmark` measures.

pub mod random;
