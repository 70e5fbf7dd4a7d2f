//! Table of a watch on a terminal: the answer, the matrix and the last changes, drawn over each
//! other as nodes change.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};

use jiff::Zoned;
use wincimg_cluster::live::NodeChange;
use wincimg_cluster::nodes::{Node, NodeList};
use wincimg_cluster::rollout::{Rollout, RolloutRequest};

use super::screen;
use crate::report::write_glance;

/// So many changes are listed below the table.
const CHANGES: usize = 5;

/// The table, and how much of the terminal it takes.
pub(super) struct Table {
    request: RolloutRequest,
    changes: VecDeque<String>,
    lines: usize,
}

impl Table {
    /// A table on stdout; none where that is not a terminal, or one that only ever goes on.
    pub(super) fn on_terminal(request: &RolloutRequest) -> Option<Self> {
        let can_go_back = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        (io::stdout().is_terminal() && can_go_back).then(|| Self {
            request: request.clone(),
            changes: VecDeque::new(),
            lines: 0,
        })
    }

    /// Adds a change, with its description.
    pub(super) fn take(&mut self, change: &NodeChange, changes: &[String]) {
        apply(&mut self.request.nodes, change);
        let now = Zoned::now().strftime("%H:%M:%S").to_string();
        for words in changes {
            self.changes.push_back(format!("{now} {words}"));
        }
        let spare = self.changes.len().saturating_sub(CHANGES);
        self.changes.drain(..spare);
    }

    /// Draws it where it stood before.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let (screen, height) = (screen(), terminal_height());
        let mut text = Vec::new();
        write_glance(&Rollout::new(&self.request), screen, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        let mut below: Vec<String> = vec![String::new()];
        let fits = |line: &String| line.chars().take(screen.width).collect::<String>();
        below.extend(self.changes.iter().map(fits));
        let count = self.request.nodes.windows.len();
        let plural = if count == 1 { "" } else { "s" };
        let watching = format!("watching {count} Windows node{plural}; Ctrl-C ends");
        below.push(fits(&watching));
        // The last line of a terminal is where the cursor is.
        let room = height.saturating_sub(below.len() + 1).max(1);
        let mut lines: Vec<&str> = text.lines().take(room).collect();
        if text.lines().count() > room && room > 1 {
            lines[room - 1] = "…";
        }
        let mut frame = String::new();
        if self.lines > 0 {
            // Back to its first line, and everything below it away.
            frame = format!("\x1b[{}A\r\x1b[J", self.lines);
        }
        self.lines = lines.len() + below.len();
        for line in lines.into_iter().chain(below.iter().map(String::as_str)) {
            frame.push_str(line);
            frame.push('\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

fn terminal_height() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(24, |(_, height)| usize::from(height.0))
}

/// Puts a node in the place that it had.
fn apply(nodes: &mut NodeList, change: &NodeChange) {
    let name = [&change.before, &change.after]
        .into_iter()
        .flatten()
        .flat_map(|list| list.windows.iter().chain(&list.others))
        .find_map(|node| node.name.clone());
    let after = change.after.clone().unwrap_or_default();
    put(&mut nodes.windows, name.as_deref(), after.windows);
    put(&mut nodes.others, name.as_deref(), after.others);
}

fn put(nodes: &mut Vec<Node>, name: Option<&str>, new: Vec<Node>) {
    match nodes.iter().position(|node| node.name.as_deref() == name) {
        Some(place) => drop(nodes.splice(place..=place, new)),
        None => nodes.extend(new),
    }
}
