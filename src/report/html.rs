//! The report as one HTML file that fetches nothing: the result, the actions, charts, and a matrix
//! of nodes and images or workloads. The page's script draws tables from embedded data, a part at a
//! time, so that thousands of nodes cost no more than the visible ones.

mod charts;
mod data;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use wincimg_common::untrusted::is_harmful;

use super::summary::{answers, checks_in_words, current_headline, without_answers};
use super::{behind, remarks};
use crate::report::prelude::*;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
/// Scripts in the order in which they run.
const SCRIPTS: [&str; 4] = [
    include_str!("html/data.js"),
    include_str!("html/parts.js"),
    include_str!("html/views.js"),
    include_str!("html/main.js"),
];

/// Time of a report, and the source of its nodes.
#[derive(Debug, Clone)]
pub(crate) struct ReportOrigin {
    pub time: Timestamp,
    /// The cluster, or the file that lists its nodes; none if hosts are given by their builds.
    pub nodes: Option<String>,
}

impl ReportOrigin {
    /// `Checked 2026-11-24 10:05 UTC · cluster production · wincimg 0.2.0`.
    fn describe(&self) -> String {
        let time = self.time.strftime("Checked %Y-%m-%d %H:%M UTC").to_string();
        let version = concat!("wincimg ", env!("CARGO_PKG_VERSION")).to_owned();
        let parts = [Some(time), self.nodes.clone(), Some(version)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

pub(crate) fn write_html(
    rollout: &Rollout,
    origin: &ReportOrigin,
    mut out: impl Write,
) -> io::Result<()> {
    let mut data = data::data(rollout);
    escape_harmful(&mut data);
    let data = serde_json::to_string(&data)?
        // The data must not contain the end tag of its element, nor a command of CI systems.
        .replace('<', "\\u003c")
        .replace("##", "#\\u0023");
    let script = SCRIPTS.concat();
    let parts = answers(rollout).into_iter().flatten();
    let mut parts = parts.map(|part| part.with_names());
    let answer = parts.next();
    let answer = answer.unwrap_or_else(|| without_answers(rollout));
    let rest: Vec<String> = parts.map(|words| escaped(&words)).collect();
    let mut lines = vec![checks_in_words(&rollout.summary)];
    lines.extend(remarks(rollout));
    lines.extend(behind(rollout));
    lines.extend(rollout.missing_fixes.iter().flat_map(security_lines));
    lines.extend(current_headline(rollout));
    let values = [
        ("answer", escaped(&answer)),
        ("rest", rest.join(" · ")),
        ("summary", escaped(&lines.join(". "))),
        ("origin", escaped(&origin.describe())),
        ("pictures", charts::charts(rollout)),
        // Only the page's own style and script are allowed, and no requests.
        ("style-hash", hash_of(STYLE)),
        ("script-hash", hash_of(&script)),
        ("style", STYLE.to_owned()),
        ("script", script),
        ("data", data),
    ];
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        out.write_all(before.as_bytes())?;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            out.write_all(value.as_bytes())?;
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Escapes what moves the cursor or the direction of text in all strings of a value.
fn escape_harmful(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(text),
        Value::Array(entries) => entries.iter_mut().for_each(escape_harmful),
        Value::Object(fields) => {
            let escaped = std::mem::take(fields).into_iter();
            *fields = escaped
                .map(|(key, mut value)| {
                    escape_harmful(&mut value);
                    (visible(&key), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) && !matches!(c, '\n' | '\t') {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A text on one line of the page, which a CI system may show in its log.
pub(super) fn escaped(text: &str) -> String {
    UntrustedText(text)
        .to_string()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

pub(super) fn hash_of(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(Sha256::digest(text)))
}
