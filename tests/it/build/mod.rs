//! End-to-end tests of `wincimg build`: with the demo registry, which records requests, and with
//! real components.

mod access;
mod buildx_flags;
mod certificates;
pub(crate) mod configuration;
mod context;
mod flags;
mod formats;
pub(crate) mod host_process;
mod index;
mod interrupted;
pub(crate) mod joined;
mod messages;
mod platform;
mod pushed;
mod readers;
mod refused;
mod registry;
mod reuse;
mod services;
