//! Names in a Dockerfile, for shell completion.

use std::collections::HashSet;

use super::instruction::{InstructionKind, ParsedInstruction};
use super::source::Dockerfile;

/// The names in a Dockerfile.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DockerfileNames {
    /// Named stages and their bases.
    pub stages: Vec<(String, String)>,
    /// Build arguments and their defaults.
    pub arguments: Vec<(String, Option<String>)>,
}

impl DockerfileNames {
    /// Reads a Dockerfile; invalid lines are skipped.
    pub fn read(text: &str) -> Self {
        let file = Dockerfile::read(text);
        let mut outline = Self::default();
        let mut arguments = HashSet::new();
        for instruction in &file.instructions {
            match ParsedInstruction::read(instruction, file.escape).map(|step| step.kind) {
                Ok(InstructionKind::From(from)) => {
                    outline
                        .stages
                        .extend(from.name.map(|name| (name, from.image)));
                }
                Ok(InstructionKind::Arg(list)) => {
                    for (name, default) in list {
                        if arguments.insert(name.clone()) {
                            outline.arguments.push((name, default));
                        }
                    }
                }
                _ => {}
            }
        }
        outline
    }
}
