[CmdletBinding(SupportsShouldProcess = $true)]
param(
    # Change nothing, and fail unless the node has the update's version: for after the restart.
    [switch]$Verify,
    # Remove the update if Windows allows it, and restore automatic updates.
    [switch]$Undo,
    # Leave automatic updates unchanged.
    [switch]$KeepAutomaticUpdates,
    # Folder with the update's files.
    [string]$Folder,
    # Run on these nodes, over PowerShell remoting, instead of this one.
    [string[]]$ComputerName
)
