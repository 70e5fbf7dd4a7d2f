[CmdletBinding(SupportsShouldProcess = $true)]
param(
    # Take everything back to what it was before the first run.
    [switch]$Undo,
    # Leave the images to the first pods that need them.
    [switch]$SkipPull
)
