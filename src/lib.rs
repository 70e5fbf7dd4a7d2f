//! The `wincimg` program: one file a command in `cli`, and the forms of what is reported in
//! `report`. All else is in the crates of `crates/`.

mod cli;
mod report;

pub use cli::{command, main};
