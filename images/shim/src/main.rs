//! The shim's executable: an entry point without a C runtime, so that the file is small and asks
//! for nothing that Nano Server lacks.

#![cfg_attr(windows, no_std, no_main)]

#[cfg(windows)]
mod runtime;

#[cfg(not(windows))]
fn main() -> std::process::ExitCode {
    // Built here only so that the workspace's checks see it.
    std::process::ExitCode::from(125)
}
