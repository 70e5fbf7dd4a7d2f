//! YAML and JSON as kubectl reads them: several documents, and of a key that is there twice the last.

use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use super::text::without_place;

/// What a text holds.
pub(super) struct Documents {
    /// Each with the line where it begins, counted from 1.
    pub(super) documents: Vec<(usize, Value)>,
    /// What was read although it can hardly be meant.
    pub(super) warning: Option<Malformed>,
}

/// What is wrong with a text, and where, counted from 1.
pub(super) struct Malformed {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) problem: String,
}

/// The documents of a text.
pub(super) fn documents(text: &str) -> Result<Documents, Malformed> {
    if text.trim_start().starts_with(['{', '[']) {
        return json_documents(text).map(|documents| Documents {
            documents,
            warning: None,
        });
    }
    match yaml_documents(text, DuplicateKeyPolicy::Error) {
        Ok(documents) => Ok(Documents {
            documents,
            warning: None,
        }),
        Err(Problem {
            malformed,
            is_twice: false,
        }) => Err(malformed),
        Err(twice) => {
            let read = yaml_documents(text, DuplicateKeyPolicy::LastWins);
            Ok(Documents {
                documents: read.map_err(|problem| problem.malformed)?,
                warning: Some(twice.malformed),
            })
        }
    }
}

/// Why YAML cannot be read, and whether that is only a key that is there twice.
struct Problem {
    malformed: Malformed,
    is_twice: bool,
}

fn yaml_documents(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Vec<(usize, Value)>, Problem> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        emit_comments: false,
        duplicate_keys: duplicate_keys,
        budget: serde_saphyr::budget! {
            max_events: 50_000_000,
            max_nodes: 50_000_000,
            max_documents: 1_000_000,
            max_total_scalar_bytes: 1 << 30,
        },
    };
    let documents: Vec<serde_saphyr::Spanned<Value>> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let location = error.location();
            let place = |of: fn(&serde_saphyr::Location) -> u64| {
                location
                    .as_ref()
                    .and_then(|location| usize::try_from(of(location)).ok())
                    .unwrap_or(1)
            };
            let said = error.to_string();
            let said = without_place(first_line(&said));
            let is_twice = matches!(error, serde_saphyr::Error::DuplicateMappingKey { .. });
            // What else the library says there is for those who write programs.
            let problem = said.split_once(", set ").filter(|_| is_twice);
            Problem {
                malformed: Malformed {
                    line: place(serde_saphyr::Location::line),
                    column: place(serde_saphyr::Location::column),
                    problem: problem.map_or(said, |(problem, _)| problem).to_owned(),
                },
                is_twice,
            }
        })?;
    Ok(documents
        .into_iter()
        .map(|document| {
            let line = usize::try_from(document.referenced.line()).unwrap_or(1);
            (line.max(1), document.value)
        })
        .collect())
}

/// One JSON document after the other, as `kubectl get … -o json` prints them when it is run twice.
fn json_documents(text: &str) -> Result<Vec<(usize, Value)>, Malformed> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let rest = text.get(stream.byte_offset()..).unwrap_or_default();
        let start = text.len() - rest.trim_start().len();
        let line = 1 + text[..start].matches('\n').count();
        match stream.next() {
            None => return Ok(documents),
            Some(Ok(document)) => documents.push((line, document)),
            Some(Err(error)) => {
                return Err(Malformed {
                    line: error.line(),
                    column: error.column(),
                    problem: without_place(&error.to_string()).to_owned(),
                });
            }
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}
