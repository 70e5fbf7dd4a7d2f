//! Redacts passwords typed in arguments, where every user of the machine can read them, from the
//! terminal and from logs.

use std::borrow::Cow;
use std::sync::OnceLock;

use clap::{Arg, Command, CommandFactory as _};
use wincimg_common::untrusted::{HIDDEN, password};

use super::{Cli, login, typed_arguments};

/// A password in an argument, or the whole user of a URL, which may be a token.
struct ArgumentPassword {
    secret: String,
    is_of_url: bool,
    /// The host, unless the flag takes something else than a registry.
    registry: Option<String>,
}

fn typed() -> &'static [ArgumentPassword] {
    static TYPED: OnceLock<Vec<ArgumentPassword>> = OnceLock::new();
    TYPED.get_or_init(|| {
        let mut last = String::new();
        let found = typed_arguments().filter_map(|argument| {
            let found = find(&last, &argument);
            last = argument;
            found
        });
        found.collect()
    })
}

/// The password in an argument, which may be the value of the flag before it.
fn find(last: &str, argument: &str) -> Option<ArgumentPassword> {
    let (before, after) = password(argument)?;
    let secret = argument[before.len()..argument.len() - after.len()].to_owned();
    // The user of SSH is not a secret.
    if before.ends_with("ssh://") && !secret.contains(':') {
        return None;
    }
    let host = after.trim_start_matches('@').split('/').next()?.to_owned();
    let flag = match argument.split_once('=') {
        Some((flag, _)) if flag.starts_with("--") => flag,
        _ => last,
    };
    let flag = flag.strip_prefix("--");
    let is_registry = !flag.is_some_and(|flag| takes_file_or_url(&Cli::command(), flag));
    (!secret.is_empty()).then_some(ArgumentPassword {
        secret,
        is_of_url: before.ends_with('/'),
        registry: is_registry.then_some(host),
    })
}

/// Returns true if a command has this flag for a file or a URL: registries are named by hosts.
fn takes_file_or_url(command: &Command, flag: &str) -> bool {
    let is_named = |name: &str| {
        ["FILE", "URL", "ADDRESS"]
            .iter()
            .any(|it| name.contains(it))
    };
    let is_it = |argument: &Arg| {
        let mut names = argument.get_value_names().into_iter().flatten();
        argument.get_long() == Some(flag) && names.any(|name| is_named(name))
    };
    let mut inner = command.get_subcommands();
    command.get_arguments().any(is_it) || inner.any(|inner| takes_file_or_url(inner, flag))
}

/// Returns the text without the typed passwords.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    hide_in(text, typed())
}

fn hide_in<'t>(text: &'t str, typed: &[ArgumentPassword]) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for typed in typed {
        let secret = &typed.secret;
        let before = if typed.is_of_url { "" } else { ":" };
        for secret in [secret.clone(), secret.escape_debug().to_string()] {
            let secret = format!("{before}{secret}@");
            if shown.contains(&secret) {
                shown = Cow::Owned(shown.replace(&secret, &format!("{before}{HIDDEN}@")));
            }
        }
    }
    shown
}

pub(super) fn hint() -> Option<String> {
    Some(hint_for(typed().first()?.registry.as_deref()))
}

fn hint_for(registry: Option<&str>) -> String {
    let remove = "other users can read arguments: remove user and password";
    let Some(host) = registry else {
        return remove.to_owned();
    };
    // Of a name of one label, only the user knows the port of the registry.
    let host = if login::host(host).is_ok() {
        host
    } else {
        "HOST[:PORT]"
    };
    format!("{remove}, and log in with `wincimg login {host}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_hidden_however_it_is_repeated() {
        let typed = find("", r#"--registry=bob:a"b c@repo.lan:5000/apps"#).unwrap();
        assert_eq!(typed.registry.as_deref(), Some("repo.lan:5000"));
        let typed = [typed];
        let hidden = |text| hide_in(text, &typed).into_owned();
        let expected = "invalid 'bob:***@repo.lan'";
        assert_eq!(hidden(r#"invalid 'bob:a"b c@repo.lan'"#), expected);
        let expected = r#"invalid "bob:***@repo.lan""#;
        assert_eq!(hidden(r#"invalid "bob:a\"b c@repo.lan""#), expected);
        assert_eq!(hidden("bob: a"), "bob: a");

        let typed = [find("", "--to=https://TOKEN@repo.lan/x").unwrap()];
        let hidden = |text| hide_in(text, &typed).into_owned();
        assert_eq!(typed[0].registry.as_deref(), Some("repo.lan"));
        assert_eq!(
            hidden("invalid 'https://TOKEN@repo.lan/x', 'TOKEN@repo.lan'"),
            "invalid 'https://***@repo.lan/x', '***@repo.lan'"
        );
    }

    #[test]
    fn login_is_named_only_for_registries() {
        for (last, argument, is_registry) in [
            ("inspect", "bob:SECRET@repo.lan/app:1", true),
            ("--to", "https://TOKEN@repo.lan", true),
            ("--insecure-registry", "bob:SECRET@repo.lan", true),
            ("--docker-host", "tcp://bob:SECRET@repo.lan:2375", false),
            ("scan", "--vex=https://bob:SECRET@repo.lan/x?a=b", false),
            ("--vex", "https://bob:SECRET@repo.lan/x?a=b", false),
            ("--builder", "buildkit://bob:SECRET@repo.lan:1234", false),
        ] {
            let found = find(last, argument).unwrap();
            assert_eq!(found.registry.is_some(), is_registry, "{last} {argument}");
        }
        assert!(!hint_for(None).contains("login"));
        assert!(find("--docker-host", "ssh://bob@build01").is_none());
        assert!(find("--docker-host", "ssh://bob:SECRET@build01").is_some());
    }

    #[test]
    fn login_is_named_with_a_host_that_it_takes() {
        for (host, named) in [
            ("repo.lan", "`wincimg login repo.lan`"),
            ("reg:5000", "`wincimg login reg:5000`"),
            ("reg", "`wincimg login HOST[:PORT]`"),
            ("a b", "`wincimg login HOST[:PORT]`"),
        ] {
            let hint = hint_for(Some(host));
            assert!(hint.ends_with(named), "{hint}");
            #[cfg(debug_assertions)]
            crate::cli::hint_check::check(&hint, std::iter::empty());
        }
    }
}
