//! Shared part of PowerShell scripts for nodes.

/// Functions that report progress (`Write-Step`) and the outcome (`Get-Outcome`), read the node's
/// version (`Get-PresentVersion`), run programs (`Invoke-Native`), and turn automatic updates off and
/// on (`Disable-AutomaticUpdate`, `Restore-AutomaticUpdate`).
pub const SHARED: &str = include_str!("node/shared.ps1");
