//! Executables with version resources, metadata of .NET and of Go, lists of packages, Java libraries,
//! packages of Windows Installer, and the hive with installed programs.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|bytes: &[u8]| wincimg_inspect::provenance::fuzz::packages(bytes));
