//! `docs/registries.md`, generated from the profiles and the results.

use super::profile::{Login, Profile};
use super::profiles::ALL;
use super::visit::Outcomes;

/// The page in the repository.
pub const PAGE: &str = include_str!("../../../docs/registries.md");

const HEAD: &str = "# Registries

**No vendor's registry was tested.** The tests in `tests/it/registry_products` simulate each one as a server with the [differences](#differences) from `distribution` below. A source about one release counts for all. `distribution` 2.8.2 is Debian's package itself.

Tested are `build --push` on Microsoft's base and on one in the registry, `base list` of all tags, `doctor`, and, also with a layer of 33 MiB, `mirror` of a base and `inspect` of every layer.

| Registry | Tests passed |
| --- | --- |
";

const ATTACHED: &str = "
Documents about an image use the referrers API, or the tag `sha256-DIGEST` of registries without it (`distribution`, GHCR, Nexus), whose other entries are kept.
";

/// The registry that is run for real.
pub const ITSELF: &str = "distribution 2.8.2 itself, Debian's";

/// The commands of the outcomes, in their order.
const COMMANDS: [&str; 5] = ["build --push", "mirror", "inspect", "base list", "doctor"];

/// A line in the table.
pub fn row(name: &str, outcomes: Outcomes) -> String {
    let failures: Vec<String> = outcomes
        .iter()
        .zip(COMMANDS)
        .filter_map(|(&(small, large), command)| match (small, large) {
            (true, Some(true) | None) => None,
            (true, Some(false)) => Some(format!("`{command}` of large layers")),
            (false, _) => Some(format!("`{command}`")),
        })
        .collect();
    match failures.as_slice() {
        [] => format!("| {name} | all |"),
        failures => format!("| {name} | all except {} |", failures.join(", ")),
    }
}

/// The whole page; keeps the table's lines, which other tests check.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    let names = ALL.iter().map(|profile| profile.name);
    for name in names.chain([ITSELF]) {
        let start = format!("| {name} |");
        let line = PAGE.lines().find(|line| line.starts_with(&start));
        text += line.unwrap_or("| ? |");
        text.push('\n');
    }
    text += ATTACHED;
    text += "\n## Differences\n";
    for profile in ALL {
        text += &format!("\n### {}\n\n{}\n", profile.name, login(profile));
        for (quirk, source) in profile.rows {
            text += &format!("- [{}]({source})\n", capital(&quirk.to_string()));
        }
        if !profile.flags.is_empty() {
            text += &format!(
                "\nCopies of Docker images require `{}`.\n",
                profile.flags.join(" ")
            );
        }
    }
    text
}

fn login(profile: &Profile) -> String {
    let host = profile.host;
    let user = match profile.user {
        "me" => String::new(),
        name => format!(", user `{name}`"),
    };
    match profile.login {
        Login::Open => format!("`{host}`; public and read-only.\n"),
        Login::Password | Login::Token { .. } => format!("`{host}`{user}.\n"),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}
