//! Amounts of memory: parsing and printing, the same everywhere.
