//! Packages of updates: MSU as cabinet or WIM, CAB, and EXE.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|bytes: &[u8]| wincimg_catalog::fuzz::package(bytes));
