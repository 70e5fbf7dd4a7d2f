//! Properties of every text: no panic, clean corrections, and quotes that reach the program.

use proptest::prelude::*;
use wincimg_scripts::script;
use wincimg_windows::quoting::argv::{ArgvParser, split};
use wincimg_windows::quoting::{Escape, cmd, exec_form, powershell};
use wincimg_windows::testing::shell_lines::{for_cmd, for_powershell};

use super::*;

/// The file with a finding's lines replaced by its correction.
pub(super) fn corrected(source: &str, finding: &LintFinding) -> Option<String> {
    let fix = finding.fix.as_deref()?;
    let mut lines: Vec<&str> = source.split('\n').collect();
    lines.splice(finding.fix_line - 1..finding.last_line, fix.split('\n'));
    Some(lines.join("\n"))
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "FROM ", "RUN ", "COPY ", "CMD ", "ENTRYPOINT ", "SHELL ", "ARG ", "ENV ", "ONBUILD ",
            "mcr.microsoft.com/windows/servercore:ltsc2019", "aspnet", " AS base\n", "FROM base\n",
            "[\"powershell\", \"-Command\"]", "[\"reg\", \"add\"", "]", "[\"C:\\app\"]", "\\\n",
            "`\n", "\n", "\r\n", "# escape=`\n", "#", "\"", "\\\"", "'", "a b", "C:\\a\\", " ",
            "reg add HKLM\\x", " /f", " /v ", "WaitToKillServiceTimeout", " /t REG_DWORD",
            "ProcessShutdownTimeoutSeconds", " /d 90", " && ", "|", "&", "<<EOF", "EOF\n", "^",
            "powershell -Command ", "cmd /c ", "Set-ItemProperty -Name ", "fileExtension=", "json",
            "${", "}", "$X", "%PATH%", "ü", "漢", "😀", "\u{2028}", "\t", ";", "2>",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn any_shell() -> impl Strategy<Value = BaseShell> {
    prop::sample::select(vec![Cmd, PowerShell, Other, Unknown])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_text_can_be_linted(
        fragments in prop::collection::vec(fragment(), 0..24),
        shell in any_shell(),
    ) {
        let source = fragments.concat();
        let options = LintOptions { shell: Some(shell), ..for_host("17763.973") };
        let lines = source.split('\n').count();
        for finding in lint_with(&source, &options) {
            prop_assert!(finding.line >= 1 && finding.line <= finding.last_line);
            prop_assert!(finding.last_line <= lines);
        }
    }

    #[test]
    fn a_corrected_file_no_longer_has_the_finding(
        fragments in prop::collection::vec(fragment(), 0..10),
        shell in any_shell(),
    ) {
        let source = format!("{PINNED}RUN {}", fragments.concat());
        let options = LintOptions { shell: Some(shell), ..for_host("17763.973") };
        for finding in lint_with(&source, &options) {
            let Some(after) = corrected(&source, &finding) else { continue };
            let added = finding.fix.iter().flat_map(|fix| fix.split('\n')).count();
            let left: Vec<LintFinding> = lint_with(&after, &options)
                .into_iter()
                .filter(|other| other.rule == finding.rule)
                // An instruction with a corrected name may have wrong arguments too.
                .filter(|other| other.rule != "invalid-instruction" || other.fix == finding.fix)
                .filter(|other| (finding.fix_line..finding.fix_line + added).contains(&other.line))
                .collect();
            prop_assert!(left.is_empty(), "{:?}\nleft: {:?}\nin: {:?}", finding, left, after);
        }
    }

    #[test]
    fn escaping_under_powershell_gives_the_program_what_the_author_wrote(
        arguments in prop::collection::vec("[a-z:\\\\ =/.,;&|()-]{1,8}", 1..4),
    ) {
        // A line that is correct at a prompt, after RUN.
        let quoted: Vec<String> = arguments.iter().map(|argument| format!("\"{argument}\"")).collect();
        let line = format!("RUN x.exe {}", quoted.join(" "));
        let findings = lint_with(&format!("{PINNED}{line}"), &with_shell(PowerShell));
        let text = |line: &str| powershell::script(line.strip_prefix("RUN ").unwrap());
        match findings.as_slice() {
            [] => {
                // The number of backslashes in a path makes no difference.
                let read = |script: &str| {
                    let is_path = script.contains(":\\");
                    let mut single = script.to_owned();
                    while single.contains("\\\\") {
                        single = single.replace("\\\\", "\\");
                    }
                    script::read(if is_path { &single } else { script })
                };
                let meant = read(line.strip_prefix("RUN ").unwrap());
                prop_assert!(!meant.is_sound() || meant.is_equivalent(&read(&text(&line))));
            }
            [finding] => {
                let words = powershell::simple_command(&text(finding.fix.as_ref().unwrap())).unwrap();
                prop_assert_eq!(&words[1..], arguments.as_slice(), "{:?}", finding);
            }
            _ => prop_assert!(false, "{:?}", findings),
        }
    }

    #[test]
    fn plain_quotes_under_cmd_give_the_program_what_the_author_wrote(
        program in prop::sample::select(vec!["x.exe", "C:\\Program Files\\x.exe"]),
        arguments in prop::collection::vec("[a-z:/.,;=()'&|]{0,3} [a-z:/.,;=()'&|]{1,6}", 1..4),
    ) {
        let quoted = |text: &str| if text.contains(' ') { format!("\\\"{text}\\\"") } else { text.to_owned() };
        let words: Vec<String> = iter::once(program)
            .chain(arguments.iter().map(String::as_str))
            .map(quoted)
            .collect();
        let line = format!("RUN {}", words.join(" "));
        let fixed = only_finding(Cmd, &line).fix.unwrap();
        let command_line = cmd::parse(fixed.strip_prefix("RUN ").unwrap(), |_| None).unwrap();
        let argv = split(&command_line, ArgvParser::CRuntime);
        prop_assert_eq!(&argv[0], program);
        prop_assert_eq!(&argv[1..], arguments.as_slice(), "{}", fixed);
    }

    #[test]
    fn a_program_taken_out_of_its_shell_keeps_its_arguments(
        arguments in prop::collection::vec("[a-z \"\\\\&^<']{0,6}", 0..4),
        escape in prop::sample::select(vec![Escape::Backslash, Escape::Backtick]),
    ) {
        let argv: Vec<String> = iter::once("C:\\a b\\x.exe".to_owned()).chain(arguments).collect();
        let texts = [
            (Cmd, for_cmd(&argv, escape)),
            (PowerShell, for_powershell(&argv)),
        ];
        for (base, text) in texts {
            let finding = only_finding(base, &format!("ENTRYPOINT {text}"));
            let expected = format!("ENTRYPOINT {}", exec_form(&argv));
            prop_assert_eq!(finding.fix.as_deref(), Some(expected.as_str()), "{}", text);
        }
    }
}
