//! The `wincimg` program: one file per command in `cli`, and report formats in `report`. The
//! libraries are in `crates/`.

mod cli;
mod report;

pub use cli::{command, main};
