//! From a recipe to images: [`order`] finds the bases and makes the plans, [`direct`] makes the
//! images without Windows, [`docker`] lets a daemon on Windows make them, [`delivery`] brings them to
//! where they belong.

pub mod addition;
pub mod delivered;
pub mod delivery;
pub mod direct;
pub mod docker;
pub mod error;
mod iis;
pub mod order;
mod output;
