mod advice;
mod arguments;
mod base;
mod corpus;
mod corrections;
mod documentation;
mod entrypoints;
mod forms;
mod gaps;
mod lines;
mod owners;
mod platforms;
mod properties;
mod quotes;
mod registry;
mod rules;
mod slips;
mod time;
mod traps;
mod twins;

use super::BaseShell::{Cmd, Other, PowerShell, Unknown};
use super::*;

/// Findings of a file, with severities that the documentation of their rules has.
fn lint(source: &str) -> Vec<LintFinding> {
    lint_with(source, &LintOptions::default())
}

fn lint_with(source: &str, options: &LintOptions) -> Vec<LintFinding> {
    let findings = super::lint(source, options).findings;
    let severities = findings.iter().map(|it| (it.rule.name, it.severity));
    for (name, severity) in severities.collect::<HashSet<_>>() {
        documentation::check_severity(rule::named(name), severity);
    }
    findings
}

const PINNED: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";
const CORE: &str = "FROM mcr.microsoft.com/windows/servercore:10.0.20348.2402\n";
const NANO: &str = "FROM mcr.microsoft.com/windows/nanoserver:10.0.20348.2402\n";
const SHELL: &str = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n";

/// Findings of instructions below a base, or of a file.
fn findings(base: &str, text: &str) -> Vec<LintFinding> {
    let base = if text.contains("FROM ") { "" } else { base };
    lint(&format!("{base}{text}\n"))
}

/// Those of a rule.
fn of_rule(base: &str, rule: &str, text: &str) -> Vec<LintFinding> {
    let findings = findings(base, text).into_iter();
    findings.filter(|it| it.rule.name == rule).collect()
}

/// The severities of these.
fn severities(base: &str, rule: &str, text: &str) -> Vec<Severity> {
    let found = of_rule(base, rule, text).into_iter();
    found.map(|it| it.severity).collect()
}

/// Cases of a table: `TEXT => EXPECTED`. `¶` is a line break, `SHELL` a line that makes PowerShell the
/// shell, and `NANO` that of the base Nano Server.
fn cases(table: &str) -> impl Iterator<Item = (String, &str)> {
    table.trim().lines().map(|case| {
        let (text, expected) = case.trim_start().split_once(" => ").unwrap();
        let text = text.replace("SHELL¶", SHELL).replace("NANO¶", NANO);
        let text = text.replace('¶', "\n");
        (text, expected)
    })
}

/// Names of the rules that find something.
fn names(base: &str, text: &str) -> Vec<&'static str> {
    let findings = findings(base, text).into_iter();
    findings.map(|it| it.rule.name).collect()
}

fn with_shell(shell: BaseShell) -> LintOptions {
    LintOptions {
        shell: Some(shell),
        ..LintOptions::default()
    }
}

fn for_host(host: &str) -> LintOptions {
    LintOptions {
        host: Some(HostBuild::new(host.parse().unwrap())),
        ..LintOptions::default()
    }
}

/// Findings of a file as `line rule`, in order.
fn found(source: &str) -> Vec<String> {
    found_with(source, &LintOptions::default())
}

fn found_with(source: &str, options: &LintOptions) -> Vec<String> {
    lint_with(source, options)
        .iter()
        .map(|finding| format!("{} {}", finding.line, finding.rule.name))
        .collect()
}

fn rules_under(shell: BaseShell, instructions: &str) -> Vec<&'static str> {
    lint_with(&format!("{PINNED}{instructions}"), &with_shell(shell))
        .iter()
        .map(|finding| finding.rule.name)
        .collect()
}

/// The only finding about a text.
fn lone(text: &str, mut findings: Vec<LintFinding>) -> LintFinding {
    assert_eq!(findings.len(), 1, "{text}: {findings:#?}");
    findings.remove(0)
}

/// The only finding of a rule about instructions below a base.
fn only(base: &str, rule: &str, text: &str) -> LintFinding {
    lone(text, of_rule(base, rule, text))
}

/// Checks that no text below a base has a finding of the rule.
fn silent(base: &str, rule: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(of_rule(base, rule, text), [], "{text}");
    }
}

/// The only finding about these instructions, on a pinned base image, in a shell.
fn only_finding(shell: BaseShell, instructions: &str) -> LintFinding {
    let source = format!("{PINNED}{instructions}");
    lone(instructions, lint_with(&source, &with_shell(shell)))
}

fn fix(shell: BaseShell, rule: &str, instructions: &str) -> String {
    let finding = only_finding(shell, instructions);
    assert_eq!(finding.rule, rule);
    let fix = finding.fix.unwrap();
    assert_eq!(
        rules_under(shell, &fix),
        [""; 0],
        "the correction is not clean: {fix}"
    );
    fix
}

fn clean(shell: BaseShell, instructions: &str) {
    assert_eq!(rules_under(shell, instructions), [""; 0], "{instructions}");
}
