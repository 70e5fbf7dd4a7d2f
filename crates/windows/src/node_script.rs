//! PowerShell scripts for nodes: a table of settings, followed by a text that is the same for every
//! node.

/// Functions that report progress (`Write-Step`) and the outcome (`Get-Outcome`), read the node's
/// version (`Get-PresentVersion`), run programs (`Invoke-Native`), and turn automatic updates off and
/// on (`Disable-AutomaticUpdate`, `Restore-AutomaticUpdate`).
pub const SHARED: &str = include_str!("node_script/shared.ps1");

/// A script for Windows PowerShell 5.1 and later: the comment says what it does, the body reads the
/// settings in the variable `table`, and uses the functions that the scripts share.
pub fn script(
    comment: &str,
    parameters: &str,
    (table, settings): (&str, &str),
    body: &str,
) -> String {
    let mut text = format!(
        "#Requires -Version 5.1\n#Requires -RunAsAdministrator\n# {comment}\n\
         # It checks the node's state first, so it can be run repeatedly.\n\n\
         {parameters}\n${table} = @{{\n{settings}}}\n{SHARED}{body}"
    );
    if !text.is_ascii() {
        // Windows PowerShell reads a file without a BOM in the machine's code page.
        text.insert(0, '\u{feff}');
    }
    text
}

/// The value of a switch.
pub const fn switch(on: bool) -> &'static str {
    if on { "$true" } else { "$false" }
}
