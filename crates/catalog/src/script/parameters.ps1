[CmdletBinding(SupportsShouldProcess = $true)]
param(
    # Change nothing, and fail unless the node has what the update brings: for after the restart.
    [switch]$Verify,
    # Take the update back where Windows lets it go, and automatic updates to what they were.
    [switch]$Undo,
    # Leave automatic updates as they are.
    [switch]$KeepAutomaticUpdates,
    # The folder that has the update's files.
    [string]$Folder,
    # Do it on these nodes, over PowerShell remoting, instead of this one.
    [string[]]$ComputerName
)
