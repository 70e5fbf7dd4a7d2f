//! Executables with version resources, metadata of .NET and of Go, and lists of packages.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|bytes: &[u8]| wincimg_inspect::provenance::fuzz::packages(bytes));
