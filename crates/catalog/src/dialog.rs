//! The catalog's download dialog: a page whose script lists an update's files, one assignment a
//! line (`downloadInformation[0].files[0].url = '…';`).

use std::collections::BTreeMap;

use wincimg_common::digest::Digest;

use super::digests::read_digest;
use super::page::{PageError, reported_error};

/// One file of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateFile {
    /// Name, without path separators.
    pub name: String,
    /// URL; often plain HTTP.
    pub url: String,
    /// Expected digest, if the catalog lists one.
    pub digest: Option<Digest>,
}

/// Reads the files that a dialog lists for an update.
pub(crate) fn read_dialog(html: &str, update_id: &str) -> Result<Vec<UpdateFile>, PageError> {
    let updates = assignments(html);
    let own = updates.values().find(|update| {
        update
            .id
            .as_deref()
            .is_some_and(|id| id.eq_ignore_ascii_case(update_id))
    });
    let Some(own) = own else {
        return Err(match reported_error(html) {
            Some(words) => PageError::Reported(words),
            None => PageError::Invalid(format!(
                "the response is not a download dialog: it does not list update {update_id}"
            )),
        });
    };
    if own.files.is_empty() {
        let problem = format!("the catalog lists no file for update {update_id}");
        return Err(PageError::Invalid(problem));
    }
    let mut files: Vec<UpdateFile> = Vec::with_capacity(own.files.len());
    for fields in own.files.values() {
        let file = file(fields)?;
        match files
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(&file.name))
        {
            // The file is listed once per language.
            Some(known) if known.digest == file.digest => {}
            Some(_) => return Err(bad(&file.name, "another file has the same name")),
            None => files.push(file),
        }
    }
    Ok(files)
}

/// Error of a file without a link, or whose name is a path.
fn bad(entry: &str, problem: &str) -> PageError {
    let entry: String = entry.chars().take(100).collect();
    PageError::Invalid(format!(
        "cannot download the catalog's entry {entry:?}: {problem}"
    ))
}

fn file(fields: &BTreeMap<String, String>) -> Result<UpdateFile, PageError> {
    let field = |name: &str| {
        fields
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    };
    let named = field("fileName");
    let url = field("url").ok_or_else(|| bad(named.unwrap_or("?"), "it has no link"))?;
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let name = named
        .or_else(|| path.rsplit('/').next())
        .unwrap_or_default();
    if !is_plain_name(name) {
        return Err(bad(name, "its name is not a plain file name"));
    }
    let digest = read_digest(field("sha256"), field("digest"), name).map_err(|source| {
        PageError::Digests {
            name: name.to_owned(),
            source,
        }
    })?;
    Ok(UpdateFile {
        name: name.to_owned(),
        url: url.to_owned(),
        digest,
    })
}

/// Returns true for a name of letters, digits and a few signs, safe on every file system and inside
/// any quotes.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.starts_with(['.', '-'])
        && name.len() <= 240
        && name.contains('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-+()".contains(&byte))
}

#[derive(Default)]
struct Update {
    id: Option<String>,
    files: BTreeMap<usize, BTreeMap<String, String>>,
}

/// The assignments to `downloadInformation`, by update.
fn assignments(script: &str) -> BTreeMap<usize, Update> {
    let mut updates: BTreeMap<usize, Update> = BTreeMap::new();
    for statement in script.split("downloadInformation[").skip(1) {
        let Some((update, rest)) = index(statement) else {
            continue;
        };
        let (file, rest) = match rest.strip_prefix(".files[").map(index) {
            Some(Some((file, rest))) => (Some(file), rest),
            Some(None) => continue,
            None => (None, rest),
        };
        let Some((key, value)) = rest.strip_prefix('.').and_then(|rest| rest.split_once('='))
        else {
            continue;
        };
        let Some(value) = string_literal(value.trim_start()) else {
            continue;
        };
        let update = updates.entry(update).or_default();
        match (file, key.trim()) {
            (Some(file), key) => {
                update
                    .files
                    .entry(file)
                    .or_default()
                    .insert(key.to_owned(), value);
            }
            (None, "updateID") => update.id = Some(value),
            (None, _) => {}
        }
    }
    updates
}

/// `0].files…` → the number and what follows the bracket.
fn index(text: &str) -> Option<(usize, &str)> {
    let (digits, rest) = text.split_once(']')?;
    Some((digits.trim().parse().ok()?, rest))
}

/// A string as JavaScript writes it, in either kind of quotes.
fn string_literal(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let quote = chars.next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut value = String::new();
    loop {
        match chars.next()? {
            c if c == quote => return Some(value),
            '\\' => match chars.next()? {
                'x' => value.push(code(&mut chars, 2)?),
                'u' => value.push(code(&mut chars, 4)?),
                'n' | 'r' | 't' => value.push(' '),
                other => value.push(other),
            },
            c if c.is_control() => return None,
            c => value.push(c),
        }
    }
}

fn code(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let mut number = 0;
    for _ in 0..digits {
        number = number * 16 + chars.next()?.to_digit(16)?;
    }
    char::from_u32(number)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use wincimg_testkit::programs::sample;

    use super::*;

    const ID: &str = "7f659ce1-a58f-41a8-bcf0-18fe434f0916";
    const ENTRY: &str = "cannot download the catalog's entry ";

    fn dialog(files: &[&str]) -> String {
        let mut text = format!("<script>downloadInformation[0].updateID ='{ID}';\n");
        for (number, fields) in files.iter().enumerate() {
            for field in fields.split(", ") {
                let _ = writeln!(text, "downloadInformation[0].files[{number}].{field};");
            }
        }
        text + "</script>"
    }

    #[test]
    fn the_real_dialog_gives_its_file() {
        let file = sample("catalog/download-dialog-one-update.html");
        let html = std::fs::read_to_string(file).unwrap();
        let files = read_dialog(&html, ID).unwrap();
        assert_eq!(files.len(), 1);
        let name = "oart-x-none_e3fa9c9103bc509dcdf7e971ca3cbea0c18a7b0d.cab";
        assert_eq!(files[0].name, name);
        assert!(files[0].url.ends_with(&format!("/crup/2019/01/{name}")));
        let best = files[0].digest.as_ref().unwrap().to_string();
        assert_eq!(best, "sha1:e3fa9c9103bc509dcdf7e971ca3cbea0c18a7b0d");
    }

    #[test]
    fn every_file_comes_in_its_order_with_the_best_digest_it_has() {
        let html = dialog(&[
            "url = \"https:\\/\\/host/a.msu\", digest = '', sha256 = '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=', fileName = 'a.msu'",
            "url = 'http://host/b.msu?x=1', digest = '2jmj7l5rSw0yVb/vlWAYkK/YBwk='",
        ]);
        let files = read_dialog(&html, &ID.to_uppercase()).unwrap();
        assert_eq!(files[0].url, "https://host/a.msu");
        assert_eq!(files[1].name, "b.msu");
        for (file, digest) in files.iter().zip(["sha256:e3b0c442", "sha1:da39a3ee"]) {
            let found = file.digest.as_ref().unwrap().to_string();
            assert!(found.starts_with(digest), "{found}");
        }
    }

    #[test]
    fn a_file_listed_twice_is_one() {
        let same = "url = 'http://h/a.msu', digest = '2jmj7l5rSw0yVb/vlWAYkK/YBwk='";
        assert_eq!(read_dialog(&dialog(&[same, same]), ID).unwrap().len(), 1);
        let other = "url = 'http://h/A.msu', digest = '4/qckQO8UJ3N9+lxyjy+oMGKew0='";
        let error = read_dialog(&dialog(&[same, other]), ID).unwrap_err();
        assert!(error.to_string().starts_with(ENTRY), "{error}");
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        for name in [
            "..", "../a.msu", "a/b.msu", "C:a.msu", "a\\\\b.msu", ".a.msu", "a'b.msu",
            "a\u{7f}.msu", "msu",
        ] {
            let html = dialog(&[&format!("url = 'http://h/x', fileName = \"{name}\"")]);
            let error = read_dialog(&html, ID).unwrap_err();
            assert!(error.to_string().starts_with(ENTRY), "{name}: {error}");
        }
    }

    #[test]
    fn another_page_is_distinguished_from_one_without_files() {
        let read = |html: &str| read_dialog(html, ID).unwrap_err();
        let is_other = |html: &str| {
            let error = read(html).to_string();
            error.starts_with("the response is not a download dialog: ")
        };
        let empty = read(&dialog(&[])).to_string();
        assert_eq!(empty, format!("the catalog lists no file for update {ID}"));
        assert!(is_other("<p>hello</p>"));
        assert!(matches!(
            read("<b id='errorPageDisplayedError'>[8DDD0010]</b>"),
            PageError::Reported(words) if words == "[8DDD0010]"
        ));
        let another = dialog(&["url = 'http://h/a.msu'"]).replace("7f659ce1", "00000000");
        assert!(is_other(&another));
    }

    #[test]
    fn a_script_cut_off_anywhere_makes_no_panic() {
        let html =
            dialog(&["url = 'http://h/\\x41\\u00e4.msu', digest = '2jmj7l5rSw0yVb/vlWAYkK/YBwk='"]);
        for end in 0..html.len() {
            let _ = read_dialog(&html[..end], ID);
        }
    }
}
