//! Which engine builds, as it is asked for.

use clap::ValueEnum;
use wincimg_engine::choice::{Engine, Wish};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum EngineArg {
    Auto,
    Docker,
    Direct,
}

impl From<EngineArg> for Wish {
    fn from(argument: EngineArg) -> Self {
        match argument {
            EngineArg::Auto => Self::Any,
            EngineArg::Docker => Self::One(Engine::Docker),
            EngineArg::Direct => Self::One(Engine::Direct),
        }
    }
}
