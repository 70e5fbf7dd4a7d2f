//! The engine for Docker against a real daemon, and against a replayed one for what only Windows
//! does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod connect;
mod endpoint;
mod engine;
mod info;
mod registries;
mod replay;
