//! The functions of the C mathematics library that charts and rates need. Having them in the programs saves loading that
//! library at every start, which is a good part of what a short command takes. Programs that do not use them do not get them.

#![allow(unsafe_code)]

/// log(3).
// SAFETY: these have the names, types and meaning that C gives them.
#[unsafe(no_mangle)]
extern "C" fn log(x: f64) -> f64 {
    libm::log(x)
}

/// log10(3).
#[unsafe(no_mangle)]
extern "C" fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// log2(3).
#[unsafe(no_mangle)]
extern "C" fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// pow(3).
#[unsafe(no_mangle)]
extern "C" fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}
