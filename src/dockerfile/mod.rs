//! Dockerfiles for Windows images: what is wrong with one that somebody wrote.

pub mod lint;
