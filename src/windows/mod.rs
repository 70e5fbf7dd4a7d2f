//! What is true of Windows, its versions and its containers: pure knowledge, no I/O.
//!
//! Nothing here imports another module of the project.

pub mod compat;
pub mod hive;
pub mod iis;
pub mod path;
pub mod quoting;
pub mod regfile;
pub mod registry;
pub mod release;
pub mod security;
pub mod shutdown;
pub mod table;
pub mod text;
pub mod update;
pub mod version;
