//! What is true of Windows, its versions and its containers: pure knowledge, no I/O.
//!
//! Nothing here imports another module of the project.

pub mod version;
