//! What cmdlets do with their pipeline input.

use super::{check, image};

#[test]
fn content_without_input_is_not_written() {
    let mut tree = image();
    tree.file(r"C:\hosts", Some(b"a\r\nb\r\n".to_vec()));
    check(
        &tree,
        r"
        PS> (Get-Content C:\hosts) | ? { $_ -eq 'z' } | Set-Content C:\hosts => nothing
        PS> @() | Set-Content C:\new => nothing
        PS> @() | Add-Content C:\new => nothing
        PS> (Get-Content C:\hosts) | ? { $_ -eq 'b' } | Set-Content C:\hosts => write C:\hosts b\r\n
        # A variable that is not set is an item.
        PS> $null | Set-Content C:\hosts => write C:\hosts (empty)
        PS> $x | % { mkdir C:\once } | Out-Null => folder C:\once
        PS> $x = 1; $x = $null; $x | Set-Content C:\hosts => write C:\hosts (empty)
        PS> $x = @(); $x | Set-Content C:\hosts => nothing
        PS> Set-Content C:\hosts $null => write C:\hosts (empty)
        PS> $null | Remove-Item => NotUnderstood
    ",
    );
}
