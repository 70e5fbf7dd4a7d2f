//! Table of a watch on a terminal: the result, the matrix and the last changes, redrawn in place
//! when nodes change.

use std::collections::VecDeque;
use std::io::IsTerminal as _;

use wincimg_cluster::live::NodeChange;
use wincimg_cluster::nodes::{Node, NodeList};
use wincimg_cluster::rollout::{Rollout, RolloutRequest};

use super::screen;
use super::watch::Event;
use crate::cli::prelude::*;
use crate::report::write_summary_and_matrix;

/// Number of changes listed below the table.
const CHANGES: usize = 5;

/// The table, and its current height on the terminal.
pub(super) struct Table {
    request: RolloutRequest,
    changes: VecDeque<String>,
    lines: usize,
}

impl Table {
    /// A table on stdout; none if stdout is not a terminal, or is one that cannot move its cursor.
    pub(super) fn on_terminal(request: &RolloutRequest) -> Option<Self> {
        let can_go_back = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        (io::stdout().is_terminal() && can_go_back).then(|| Self {
            request: request.clone(),
            changes: VecDeque::new(),
            lines: 0,
        })
    }

    /// Adds a change and the verdicts that it changes.
    pub(super) fn take(&mut self, change: &NodeChange, events: &[Event]) {
        apply(&mut self.request.nodes, change);
        let now = Zoned::now().strftime("%H:%M:%S").to_string();
        for (words, _) in events {
            self.changes.push_back(format!("{now} {words}"));
        }
        let spare = self.changes.len().saturating_sub(CHANGES);
        self.changes.drain(..spare);
    }

    /// Redraws the table in place.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let (screen, height) = (screen(), terminal_height());
        let mut text = Vec::new();
        write_summary_and_matrix(&Rollout::new(&self.request), screen, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        let mut below: Vec<String> = vec![String::new()];
        let fits = |line: &String| line.chars().take(screen.width).collect::<String>();
        below.extend(self.changes.iter().map(fits));
        let nodes = count(self.request.nodes.windows.len(), "Windows node");
        below.push(fits(&format!("watching {nodes}; press Ctrl-C to stop")));
        // The cursor is on the last line of the terminal.
        let room = height.saturating_sub(below.len() + 1).max(1);
        let mut lines: Vec<&str> = text.lines().take(room).collect();
        if text.lines().count() > room && room > 1 {
            lines[room - 1] = "…";
        }
        let mut frame = String::new();
        if self.lines > 0 {
            // Move the cursor to the first line of the table, and clear everything below.
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
