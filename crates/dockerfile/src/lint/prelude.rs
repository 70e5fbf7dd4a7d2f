//! What most rules read, and what they make of it.

pub(super) use super::correction::{Correction, Edit};
pub(super) use super::evaluation::EvaluatedStep;
pub(super) use super::reference::{Platform, Reference};
pub(super) use super::shell::BaseShell;
pub(super) use super::stage::{LintStep, Stage, StageBaseRef};
pub(super) use super::statements::{PowerShellStatement, outside_quotes};
pub(super) use super::words::{
    Grammar, LintCommand, LintScript, NextOperator, Word, file_name, has_extension, program_name,
};
pub(super) use super::{Finding, LintFile, Severity, TextExt};
pub(super) use crate::instruction::InstructionKind;
