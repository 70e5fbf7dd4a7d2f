//! What most reports use, so that each file names only what is its own.

pub(super) use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
pub(super) use std::fmt::Display;
pub(super) use std::io::{self, Write};

pub(super) use serde_json::{Value, json};
pub(super) use wincimg_cluster::rollout::{
    ActionPlan, ActionStep, Finding, Image, Placement, Rollout, StartStatus, WorkloadOutcome,
};
pub(super) use wincimg_cluster::workloads::SourceLocation;
pub(super) use wincimg_common::json::write_pretty;
pub(super) use wincimg_common::untrusted::UntrustedText;
pub(super) use wincimg_windows::compat::VerdictOutcome;
pub(super) use wincimg_windows::missing_fixes::MissingFixes;

pub(super) use super::names::{self, count, escape_untrusted, joined, tally};
pub(super) use super::security::security_lines;
pub(super) use super::{
    NO_TEMPLATE, findings, hosts_in_words, in_words, what_if, workload_outcomes,
};
