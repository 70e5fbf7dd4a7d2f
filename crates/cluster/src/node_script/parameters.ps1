[CmdletBinding(SupportsShouldProcess = $true)]
param(
    # Restore the state before the first run.
    [switch]$Undo,
    # Do not pull images in advance.
    [switch]$SkipPull
)
