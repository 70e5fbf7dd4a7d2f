//! RUN lines of cmd.

#![no_main]

use libfuzzer_sys::fuzz_target;
#[path = "../run_line.rs"]
mod run_line;

fuzz_target!(|text: &str| run_line::run(&["cmd", "/S", "/C"], text));
