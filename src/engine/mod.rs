//! From a recipe to images: [`order`] finds the bases and makes the plans, [`direct`] makes the
//! images without Windows, [`docker`] lets a daemon on Windows make them, [`delivery`] brings them to
//! where they belong.

mod addition;
pub mod delivery;
pub mod direct;
pub mod docker;
mod iis;
pub mod order;
mod output;
