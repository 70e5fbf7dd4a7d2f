//! The Docker engine against a real daemon, and against a replayed one for what only Windows does.

mod connect;
mod endpoint;
mod engine;
mod info;
mod registries;
mod replay;
