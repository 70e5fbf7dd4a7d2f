# Completion of wincimg for PowerShell; in $PROFILE: wincimg completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName wincimg -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    # What was typed is read, never run.
    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value }
            else { $_.Extent.Text }
        })
    $before = $env:WINCIMG_COMPLETE
    $env:WINCIMG_COMPLETE = $words.Count
    try { $lines = @(& $words[0] '--' $words $wordToComplete 2>$null) }
    finally { $env:WINCIMG_COMPLETE = $before }
    foreach ($line in $lines) {
        $value, $help = $line -split "`t", 2
        if (-not $help) { $help = $value }
        $written = $value
        # PowerShell ends a string at each of the typographic quotes too.
        if ($value -match '[^\w\-+./\\:=]') { $written = "'" + ($value -replace "['\u2018-\u201b]", '$0$0') + "'" }
        [System.Management.Automation.CompletionResult]::new($written, $value, 'ParameterValue', $help)
    }
}
