//! `docs/registries.md`, made from the profiles and from what the visits found.

use super::profile::{Login, Profile};
use super::profiles::ALL;
use super::visit::Outcomes;

/// The page as it is in the repository.
pub const PAGE: &str = include_str!("../../../docs/registries.md");

const HEAD: &str = "# Registries

What wincimg does with the registries that people use. **Nothing on this page was tried at a vendor.** Each registry was played by the tests in `tests/it/zoo`, over TLS and under its real name, by a server that differs from `distribution` as listed below. Each difference names the public page that tells of it, or the specification that allows it; what a page says of one release is taken for all. `distribution` 2.8.2 was run itself, as Debian packages it.

- `build --push`: a small image on Microsoft's base image, and one on the same base in the registry itself.
- `mirror`: a base image from Microsoft's registry.
- `inspect`: every layer read.
- `base list`: every tag found, over as many pages as the registry makes.
- `doctor`: a push tried, and nothing found that wincimg cannot do otherwise.

\"Yes\" is with small layers and with one of 40 MiB. Microsoft's registry is only read: what is built on its bases goes to `distribution`.

| Registry | `build --push` | `mirror` | `inspect` | `base list` | `doctor` |
| --- | --- | --- | --- | --- | --- |
";

const ATTACHED: &str = "
What is about an image (`mirror` and `base index --push` put facts about bases there) is attached by the distribution specification 1.1: a registry that names the subject in its answer to the push lists it. For others, such as `distribution`, GHCR or Nexus, it is listed in an index under the tag `sha256-…` of the image's digest. cosign, notation and SBOM tools use the same tag: entries of others stay, and a list that somebody writes over at the same moment is written again. `distribution` 2.8.2 was run for that; the registry in this program's tests plays the other kind.
";

/// The registry that is run itself.
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

/// The whole page; the table's lines are those that it has, since each is another test's.
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
    text += "\n## What each does differently\n";
    for profile in ALL {
        text += &format!("\n### {}\n\n{}\n", profile.name, login(profile));
        for (quirk, source) in profile.rows {
            text += &format!("- {} ([source]({source}))\n", capital(&quirk.to_string()));
        }
        if !profile.flags.is_empty() {
            text += &format!("\nPushed to with `{}`.\n", profile.flags.join(" "));
        }
    }
    text
}

fn login(profile: &Profile) -> String {
    let host = profile.host;
    match profile.login {
        Login::Open => format!("`{host}`; everybody reads, nobody writes.\n"),
        Login::Password => {
            format!(
                "`{host}`; a password with every request, as user `{}`.\n",
                profile.user
            )
        }
        Login::Token {
            host: realm, path, ..
        } => format!(
            "`{host}`; a token from `https://{realm}{path}`, as user `{}`.\n",
            profile.user
        ),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}
