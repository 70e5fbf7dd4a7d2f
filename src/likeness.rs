//! What somebody probably meant who typed a name that is not known.

/// The known name that is most like what was typed, if one is near enough.
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_or_a_beginning_is_near_and_another_word_is_not() {
        let known = || ["nanoserver", "servercore", "iis"].into_iter();
        assert_eq!(nearest("nano", known()).as_deref(), Some("nanoserver"));
        assert_eq!(nearest("severcore", known()).as_deref(), Some("servercore"));
        assert_eq!(nearest("ubuntu", known()), None);
    }
}
