//! What most commands use, so that each file names only what is its own.

pub(super) use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
pub(super) use std::fmt::{self, Display};
pub(super) use std::fs;
pub(super) use std::io::{self, Write};
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
pub(super) use std::time::Duration;

pub(super) use clap::{Args, Subcommand, ValueEnum};
pub(super) use indicatif::BinaryBytes;
pub(super) use jiff::Zoned;
pub(super) use serde::Serialize;
pub(super) use serde_json::{Value, json};
pub(super) use wincimg_common::diagnose::{Problem, error_chain};
pub(super) use wincimg_common::files;
pub(super) use wincimg_common::progress::Progress;
pub(super) use wincimg_common::shell::{command_line, quote};
pub(super) use wincimg_common::untrusted::{QuotedText, UntrustedText};
pub(super) use wincimg_inspect::bases::parse_location;
pub(super) use wincimg_inspect::windows_images_in;
pub(super) use wincimg_oci::copy::PlatformFilter;
pub(super) use wincimg_oci::document::ManifestFormat;
pub(super) use wincimg_oci::prefix::RegistryPrefix;
pub(super) use wincimg_oci::reference::{Reference, parse_reference};
pub(super) use wincimg_oci::remote::RegistryClient;
pub(super) use wincimg_oci::store::{Location, Sink, Source};
pub(super) use wincimg_windows::compat::HostBuild;
pub(super) use wincimg_windows::version::WindowsVersion;

pub(super) use super::command_context::{Session, colour_on};
pub(super) use super::error::{Context, Failure, Result};
pub(super) use super::hosts::HostArgs;
pub(super) use super::image_source::{ImageSource, SourceArgs, parse_source};
pub(super) use super::output::{
    OutputFormat, Rows, flag_words, format_of, or_dash, write_json, write_result,
};
pub(super) use super::progress::display;
pub(super) use super::registry_args::{
    BaseRegistryArgs, HttpArgs, RegistryArgs, USER_AGENT, online, read_time,
};
pub(super) use super::{CommandOutcome, complete, registry_args};
pub(super) use crate::report::{count, extended, joined, paint, tally};
