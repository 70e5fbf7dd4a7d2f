//! Links the executable without the C runtime and without anything that differs between builds.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("windows") {
        return;
    }
    for argument in [
        "-nostartfiles",
        "-Wl,--no-insert-timestamp",
        "-Wl,--gc-sections",
        "-Wl,--subsystem,console",
    ] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
