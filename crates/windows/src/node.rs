//! Shared part of PowerShell scripts for nodes.

/// Functions that tell what happens (`Write-Step`), say how a script ended (`Get-Outcome`), know the
/// node's version (`Get-PresentVersion`), and keep Windows Update from moving the node on
/// (`Disable-AutomaticUpdate`, `Restore-AutomaticUpdate`).
pub const SHARED: &str = include_str!("node/shared.ps1");
