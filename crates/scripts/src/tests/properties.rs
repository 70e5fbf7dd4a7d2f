//! Every text after RUN is parsed without a panic, and errors point into it.

use proptest::prelude::*;
use wincimg_windows::quoting::powershell;

use super::{CMD, CORE, POWERSHELL, image, run_on};
use crate::ScriptErrorKind;
use crate::script::read;

/// Fragments of lines, so that generated lines reach deep into the grammars.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "mkdir ", "C:\\a", "C:\\", " ", " && ", " & ", " || ", " | ", "(", ")", "{", "}", "[", "]",
    "\"", "\\\"", "'", "^", "%", "%VERSION%", "%i", "$", "$env:VERSION", "$x", "$(", "${", "@(",
    "@{", "@'\n", "\n'@", "`", "\n", ";", ",", ".", "..", "::", "=", " = ", "+=", "-f ", "-eq ",
    "-not ", "-join ", "if ", "if (", "else ", "elseif ", "foreach ($x in ", "for %i in (",
    "++", "--% ", "for (", "switch (", "param(", ") do ", "exist ", "not ", "==", "echo ", ">",
    ">>", "2>&1", "nul", "set x=", "del ",
    "copy ", "rm ", "cp ", "mv ", "Copy-Item ", "Set-Content ", "-Path ", "-Force", "-Recurse:",
    "*", "?", "[Environment]::", "SetEnvironmentVariable(", "Machine", "curl -o x https://x/y",
    "tar -xf ", "powershell -Command ", "cmd /c ", "reg add HKLM\\SOFTWARE\\x ", "/v ", "<#",
    "#>", "#", "1", "0x", "-", "--", "é", "\u{201c}", "\u{2019}", "throw", "exit ", "exit 0",
    "!", "%{", "$_", "{0}", "~", "/", "\\", "\t", "\r\n", "ForEach-Object {", "Get-ChildItem ",
    "Test-Path ",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 600 } else { 20_000 }))]

    #[test]
    fn any_line_is_read_to_an_end(line in prop_oneof![4 => pieces(), 1 => "\\PC*"]) {
        for shell in [&CMD[..], &POWERSHELL[..], &CORE[..]] {
            if let Err(error) = run_on(image(), shell, &line) {
                prop_assert!(error.at <= line.len(), "{error:?}");
                prop_assert!(!error.why.is_empty());
            }
        }
        let script = read(&powershell::script(&line));
        prop_assert!(script.is_sound() || run_on(image(), &POWERSHELL, &line).is_err());
    }

    #[test]
    fn quoted_names_arrive_as_they_are(name in "[a-zA-Z0-9._-]{0,6}( [a-zA-Z0-9._-]{1,6}){0,2}[a-zA-Z0-9_]") {
        let path = format!(r"C:\x\{name}");
        let expected = format!("folder {path}");
        let is_short = name.contains('~');
        prop_assume!(!is_short && path.parse::<wincimg_windows::path::ImagePath>().is_ok());
        for (shell, line) in [
            (&CMD[..], format!("mkdir \"{path}\"")),
            (&POWERSHELL[..], format!("mkdir \\\"{path}\\\"")),
            (&CMD[..], format!("powershell -Command \"mkdir '{path}'\"")),
        ] {
            let tree = run_on(image(), shell, &line).unwrap();
            prop_assert_eq!(super::describe(&tree.actions[0]), expected.clone(), "{}", line);
        }
    }
}

#[test]
fn deep_and_long_lines_are_refused_or_read_in_time() {
    for (shell, line) in [
        (&POWERSHELL[..], "(".repeat(20_000)),
        (&POWERSHELL[..], "$(".repeat(20_000)),
        (&POWERSHELL[..], "@{a=".repeat(20_000)),
        (&POWERSHELL[..], "!".repeat(20_000)),
        (&POWERSHELL[..], "$a=".repeat(20_000)),
        (&POWERSHELL[..], format!("1{}", "+1".repeat(20_000))),
        (&POWERSHELL[..], format!("$a{}", ".b".repeat(20_000))),
        (&POWERSHELL[..], "if(1){".repeat(20_000)),
        (&POWERSHELL[..], "for(;;){".repeat(20_000)),
        (&POWERSHELL[..], "switch(1){1{".repeat(20_000)),
        (&POWERSHELL[..], "$a.(".repeat(20_000)),
        (&POWERSHELL[..], "++".repeat(20_000)),
        (&POWERSHELL[..], "[a]".repeat(20_000)),
        (&CORE[..], "a&&".repeat(20_000)),
        (&POWERSHELL[..], "powershell -Command ".repeat(2000)),
        (&CMD[..], "(".repeat(8000)),
        (&CMD[..], "cmd /c ".repeat(1000)),
        (&CMD[..], format!("a{}", "&&a".repeat(2000))),
        (&CMD[..], "if a==a ".repeat(900)),
        (&CMD[..], "for %i in (a) do ".repeat(400)),
    ] {
        drop(read(&line));
        let error = run_on(image(), shell, &line).unwrap_err();
        assert_ne!(error.kind, ScriptErrorKind::Fails, "{}", &line[..20]);
    }
    // Exponential growth is limited.
    let line = format!(
        "$a = 'xxxxxxxx'; foreach ($i in 1..900) {{ {} }}",
        "$a = $a + $a; ".repeat(3)
    );
    run_on(image(), &POWERSHELL, &line).unwrap_err();
    let line = "$a = 1, 2; foreach ($i in 1..900) { $a = $a, $a }";
    run_on(image(), &POWERSHELL, line).unwrap_err();
}
