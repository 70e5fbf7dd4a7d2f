//! `docs/registries.md`, generated from the profiles and the results.

use super::profile::{Login, Profile};
use super::profiles::ALL;
use super::visit::Outcomes;

/// The page in the repository.
pub const PAGE: &str = include_str!("../../../docs/registries.md");

const HEAD: &str = "# Registries

**No vendor's registry was tested.** The tests in `tests/it/zoo` simulate each one as a server with the differences from `distribution` below. A source about one release counts for all. `distribution` 2.8.2 is Debian's package itself.

| Command | Tested |
| --- | --- |
| `build --push` | images on Microsoft's base and on the same base in the registry |
| `mirror` | a base from Microsoft's registry |
| `inspect` | every layer |
| `base list` | all tags on all pages |
| `doctor` | a test push finds no problem without a workaround |

\"Yes\" covers small layers and one of 40 MiB. Images on Microsoft's bases are pushed to `distribution`.

| Registry | `build --push` | `mirror` | `inspect` | `base list` | `doctor` |
| --- | --- | --- | --- | --- | --- |
";

const ATTACHED: &str = "
Documents about an image, such as indexes of `mirror` and `base index --push`, use the referrers API, or the tag `sha256-DIGEST` of registries without it (`distribution`, GHCR, Nexus). Entries of other tools in that tag are kept.
";

/// The registry that is run for real.
pub const ITSELF: &str = "distribution 2.8.2 itself, Debian's";

/// A line in the table.
pub fn row(name: &str, outcomes: Outcomes) -> String {
    let cells: Vec<&str> = outcomes
        .iter()
        .map(|&(small, large)| match (small, large.unwrap_or(small)) {
            (true, true) => "yes",
            (true, false) => "small layers",
            _ => "no",
        })
        .collect();
    format!("| {name} | {} |", cells.join(" | "))
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
            text += &format!("- {} ([source]({source}))\n", capital(&quirk.to_string()));
        }
        if !profile.flags.is_empty() {
            text += &format!("\nPush requires `{}`.\n", profile.flags.join(" "));
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
        Login::Password => format!("`{host}`; password{user}.\n"),
        Login::Token {
            host: realm, path, ..
        } => format!("`{host}`; token from `https://{realm}{path}`{user}.\n"),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}
