//! Credentials of a kubeconfig.

use std::fs;

use kube::config::AuthInfo;
use secrecy::ExposeSecret;
use wincimg_common::diagnose::Problem;

use super::LiveError;

/// Removes the line break after a token, which a YAML block or a file of an editor ends with. kube
/// panics on it, or cannot send the token.
pub(super) fn trim_tokens(auth: &mut AuthInfo) -> Result<(), LiveError> {
    if let Some(token) = &auth.token {
        auth.token = Some(trimmed(token.expose_secret())?.into());
    } else if let Some(file) = &auth.token_file
        && let Ok(text) = fs::read_to_string(file)
        && text.trim() != text
    {
        // A file that is replaced while it is used has no line break, and remains a file.
        auth.token = Some(trimmed(&text)?.into());
    }
    let settings = auth.auth_provider.iter_mut().flat_map(|it| &mut it.config);
    for (_, token) in settings.filter(|(name, _)| name.ends_with("-token")) {
        *token = trimmed(token)?.to_owned();
    }
    Ok(())
}

/// Refuses the provider that kubectl 1.26 removed: kube would run its command without an end.
pub(super) fn refuse_gcp(auth: &AuthInfo) -> Result<(), LiveError> {
    let provider = auth.auth_provider.as_ref();
    if provider.is_none_or(|provider| provider.name != "gcp") {
        return Ok(());
    }
    let problem = "kubectl 1.26 removed the auth-provider gcp, which the kubeconfig names";
    let hint = "install gke-gcloud-auth-plugin, then run: \
                gcloud container clusters get-credentials CLUSTER";
    Err(Problem::new("cluster/config", problem).hint(hint).into())
}

fn trimmed(token: &str) -> Result<&str, LiveError> {
    let token = token.trim();
    if token.contains(char::is_control) {
        let problem = "the token of the kubeconfig contains a line break or control character";
        let hint = "set it again: kubectl config set-credentials USER --token=TOKEN";
        return Err(Problem::new("cluster/config", problem).hint(hint).into());
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use kube::config::AuthProviderConfig;

    use super::*;

    fn token(auth: &AuthInfo) -> Option<&str> {
        auth.token.as_ref().map(ExposeSecret::expose_secret)
    }

    #[test]
    fn a_line_break_after_a_token_is_removed() {
        let mut auth = AuthInfo {
            token: Some("secret\n".into()),
            auth_provider: Some(AuthProviderConfig {
                name: "oidc".to_owned(),
                config: [("id-token".to_owned(), "other\r\n".to_owned())].into(),
                ..AuthProviderConfig::default()
            }),
            ..AuthInfo::default()
        };
        assert!(trim_tokens(&mut auth).is_ok());
        assert_eq!(token(&auth), Some("secret"));
        let provider = auth.auth_provider.unwrap_or_default();
        assert_eq!(provider.config["id-token"], "other");
    }

    #[test]
    fn a_line_break_in_a_token_is_an_error() {
        let mut auth = AuthInfo {
            token: Some("sec\nret".into()),
            ..AuthInfo::default()
        };
        assert!(trim_tokens(&mut auth).is_err());
    }

    #[test]
    fn the_provider_that_kubectl_removed_is_refused() {
        let user = |name: &str| AuthInfo {
            auth_provider: Some(AuthProviderConfig {
                name: name.to_owned(),
                ..AuthProviderConfig::default()
            }),
            ..AuthInfo::default()
        };
        assert!(refuse_gcp(&user("gcp")).is_err());
        assert!(refuse_gcp(&user("oidc")).is_ok());
        assert!(refuse_gcp(&AuthInfo::default()).is_ok());
    }
}
