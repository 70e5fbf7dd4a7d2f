//! From a plan to an image: without Windows by [`direct`].

pub mod direct;
