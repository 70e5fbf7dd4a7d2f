//! The documentation of a rule, from the page of rules, or the list of rules.

use std::io::{self, Write};

use wincimg_dockerfile::lint::{Fix, Rule};

const PAGE: &str = include_str!("../../../docs/rules.md");

/// Writes the documentation of one rule; of several, their summaries.
pub(super) fn write(rules: &[Rule], out: &mut dyn Write) -> io::Result<()> {
    let [rule] = rules else {
        let mut rules = rules.iter();
        return rules.try_for_each(|it| writeln!(out, "{:<26}  {}", it.name, it.summary));
    };
    let fix = match rule.fix {
        Fix::None => "no fix",
        Fix::Safe => "--fix",
        Fix::Unsafe => "--unsafe-fixes",
    };
    writeln!(out, "{} ({}, {fix})\n", rule.name, rule.level.name())?;
    writeln!(out, "{}", section(rule.name).unwrap_or(rule.summary))
}

/// Text of a rule's section, without its heading.
fn section(name: &str) -> Option<&'static str> {
    let (_, rest) = PAGE.split_once(&format!("### `{name}`\n"))?;
    let end = rest.find("\n### ").or_else(|| rest.find("\n## "));
    Some(rest[..end.unwrap_or(rest.len())].trim())
}

#[cfg(test)]
mod tests {
    use wincimg_dockerfile::lint::RULES;

    use super::*;

    #[test]
    fn every_rule_has_a_section_with_a_correction() {
        for rule in &RULES {
            let section =
                section(rule.name).unwrap_or_else(|| panic!("{} has no section", rule.name));
            let examples = section.matches("```diff\n").count();
            assert_eq!(examples, 1, "{}", rule.name);
        }
    }
}
