//! Redacts passwords typed in arguments, where every user of the machine can read them, from the
//! terminal and from logs.

use std::borrow::Cow;
use std::sync::OnceLock;

use wincimg_common::untrusted::{HIDDEN, password};

use super::login;

/// A password in an argument, or the whole user of a URL, which may be a token.
struct ArgumentPassword {
    secret: String,
    is_of_url: bool,
    host: String,
}

fn typed() -> &'static [ArgumentPassword] {
    static TYPED: OnceLock<Vec<ArgumentPassword>> = OnceLock::new();
    TYPED.get_or_init(|| {
        let arguments = std::env::args_os().skip(1);
        let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
        arguments.filter_map(|argument| find(&argument)).collect()
    })
}

fn find(argument: &str) -> Option<ArgumentPassword> {
    let (before, after) = password(argument)?;
    let secret = argument[before.len()..argument.len() - after.len()].to_owned();
    let host = after.trim_start_matches('@').split('/').next()?.to_owned();
    (!secret.is_empty()).then_some(ArgumentPassword {
        secret,
        is_of_url: before.ends_with('/'),
        host,
    })
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

/// Hint for a typed password.
pub(super) fn hint() -> Option<String> {
    Some(hint_for(&typed().first()?.host))
}

fn hint_for(host: &str) -> String {
    // Of a name of one label, only the user knows the port of the registry.
    let host = if login::host(host).is_ok() {
        host
    } else {
        "HOST[:PORT]"
    };
    format!(
        "other users can read arguments: remove user and password, and log in with `wincimg login \
         {host}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_hidden_however_it_is_repeated() {
        let typed = find(r#"--registry=bob:a"b c@repo.lan:5000/apps"#).unwrap();
        assert_eq!(typed.host, "repo.lan:5000");
        let typed = [typed];
        let hidden = |text| hide_in(text, &typed).into_owned();
        assert_eq!(
            hidden(r#"invalid 'bob:a"b c@repo.lan'"#),
            "invalid 'bob:***@repo.lan'"
        );
        assert_eq!(
            hidden(r#"invalid "bob:a\"b c@repo.lan""#),
            r#"invalid "bob:***@repo.lan""#
        );
        assert_eq!(hidden("bob: a"), "bob: a");

        let typed = [find("--to=https://TOKEN@repo.lan/x").unwrap()];
        let hidden = |text| hide_in(text, &typed).into_owned();
        assert_eq!(typed[0].host, "repo.lan");
        assert_eq!(
            hidden("invalid 'https://TOKEN@repo.lan/x', 'TOKEN@repo.lan'"),
            "invalid 'https://***@repo.lan/x', '***@repo.lan'"
        );
    }

    #[test]
    fn login_is_named_with_a_host_that_it_takes() {
        for (host, named) in [
            ("repo.lan", "`wincimg login repo.lan`"),
            ("reg:5000", "`wincimg login reg:5000`"),
            ("reg", "`wincimg login HOST[:PORT]`"),
            ("a b", "`wincimg login HOST[:PORT]`"),
        ] {
            let hint = hint_for(host);
            assert!(hint.ends_with(named), "{hint}");
            #[cfg(debug_assertions)]
            crate::cli::hint_check::check_for_others(&hint);
        }
    }
}
