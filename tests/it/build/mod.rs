//! `wincimg build`, driven as a user would: against the registry of the demonstration, which counts
//! what it is asked, and against real components.

mod access;
mod certificates;
mod configuration;
mod context;
mod formats;
mod host_process;
mod index;
mod interrupted;
pub(crate) mod joined;
mod pushed;
mod readers;
mod refused;
mod registry;
mod reuse;
mod services;
mod told;
