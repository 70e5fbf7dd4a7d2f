//! A table that fits the width of the terminal: headings are shortened in the middle, and columns
//! that do not fit follow below.

use std::ops::Range;

use crate::report::names::{shorten, shorten_after};
use crate::report::prelude::*;

/// Heading of the column of rows.
const ROW_HEADING: &str = "node";

/// Two spaces between columns.
const GAP: usize = 2;

/// Minimum length of a shortened column heading.
const MIN_HEADING_WIDTH: usize = 12;

/// Maximum width of a heading's cells.
const MARK: usize = 2;

/// Headings up to this length are not shortened if they fit.
const FULL_HEADING_WIDTH: usize = 40;

/// Headings and widths of the columns.
pub(super) struct Grid {
    rows: Vec<String>,
    row_width: usize,
    columns: Vec<String>,
    width: usize,
}

impl Grid {
    /// A grid of these rows and columns, `width` characters wide.
    pub(super) fn new(rows: &[String], columns: &[String], width: usize) -> Self {
        let longest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max();
        let total: usize = columns.iter().map(|text| column_width(text)).sum();
        // The headings of the rows get the width that the columns leave, or at least half of it, up
        // to their maximum.
        let least = (width / 2)
            .min(FULL_HEADING_WIDTH)
            .max(width / 3)
            .max(MIN_HEADING_WIDTH);
        let row_width = longest(rows).unwrap_or(0).max(ROW_HEADING.len());
        let row_width = row_width.min(least.max(width.saturating_sub(total)));
        let room = width.saturating_sub(row_width).max(GAP + MARK);
        let even = room / columns.len().max(1);
        let most = longest(columns).unwrap_or(0).min(room - GAP);
        let mut kept = even
            .saturating_sub(GAP)
            .clamp(MIN_HEADING_WIDTH.min(most), most.min(FULL_HEADING_WIDTH));
        let short = |kept: usize| -> Vec<String> {
            columns.iter().map(|text| shorten(text, kept)).collect()
        };
        if total <= room {
            kept = most;
        }
        // While two of them look the same, they are made longer.
        while kept < most && distinct(&short(kept)) < distinct(columns) {
            kept += 1;
        }
        // Names of nodes differ at their ends or in the middle, so the gap moves to where they stay
        // distinct.
        let apart = |eighths: usize| -> Vec<String> {
            let start = row_width.saturating_sub(1) * eighths / 8;
            let rows = rows.iter();
            rows.map(|text| shorten_after(text, row_width, start))
                .collect()
        };
        let tells_apart = |cut: &Vec<String>| distinct(cut) == distinct(rows);
        let rows = [4, 5, 3, 6, 2].map(apart).into_iter().find(tells_apart);
        let rows = rows.unwrap_or_else(|| apart(4));
        Self {
            rows,
            row_width,
            columns: short(kept),
            width: room,
        }
    }

    /// Writes the grid; `cell` returns the text of a cell and its visible width.
    pub(super) fn write(
        &self,
        cell: impl Fn(usize, usize) -> (String, usize),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let row_width = self.row_width;
        for band in self.bands() {
            write!(out, "{ROW_HEADING:row_width$}")?;
            for heading in &self.columns[band.clone()] {
                write!(out, "  {heading}")?;
            }
            writeln!(out)?;
            for (row, heading) in self.rows.iter().enumerate() {
                write!(out, "{heading:row_width$}")?;
                let mut padding = 0;
                for column in band.clone() {
                    let (mark, looks) = cell(row, column);
                    write!(out, "{:padding$}  {mark}", "")?;
                    padding = self.columns[column].chars().count().saturating_sub(looks);
                }
                writeln!(out)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Groups of columns that fit next to the row headings; each holds at least one.
    fn bands(&self) -> Vec<Range<usize>> {
        let mut bands = Vec::new();
        let (mut start, mut used) = (0, 0);
        for (index, heading) in self.columns.iter().enumerate() {
            let needed = column_width(heading);
            if used + needed > self.width && index > start {
                bands.push(start..index);
                (start, used) = (index, 0);
            }
            used += needed;
        }
        bands.push(start..self.columns.len());
        bands
    }
}

/// Width of a column under a heading, with the gap in front of it.
fn column_width(heading: &str) -> usize {
    heading.chars().count().max(MARK) + GAP
}

fn distinct(texts: &[String]) -> usize {
    texts.iter().collect::<HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(rows: &[String], columns: &[String], width: usize) -> String {
        let mut out = Vec::new();
        let grid = Grid::new(rows, columns, width);
        grid.write(|_, _| ("NO".to_owned(), 2), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn headings_that_look_alike_get_more_room() {
        let columns = ["service-one-of-team:1", "service-two-of-team:1"].map(str::to_owned);
        let text = drawn(&["n".to_owned()], &columns, 40);
        let heads = text.lines().filter(|line| line.starts_with("node"));
        let heads: Vec<_> = heads.collect();
        let expected = ["node  service-o…of-team:1", "node  service-t…of-team:1"];
        assert_eq!(heads, expected, "one below the other");
    }

    #[test]
    fn nodes_stay_apart_where_their_names_are_cut() {
        let rows = ["0-131", "0-132"].map(|node| format!("ip-10-240-{node}.eu.lan (20348.2402)"));
        let text = drawn(&rows, &["web:1.4".repeat(9)], 50);
        assert!(text.contains("\nip-10-240-0-131…"), "{text}");
        let heads = text.lines().filter_map(|line| line.split("  ").next());
        let heads: Vec<&str> = heads.collect();
        assert_ne!(heads[1], heads[2], "{text}");
    }

    #[test]
    fn a_mark_may_be_wider_than_its_heading() {
        let row = "ip-10-240-0-131.eu-west.lan (20348.2402)".to_owned();
        for line in drawn(&[row], &[":".to_owned()], 20).lines() {
            assert!(line.trim_end().chars().count() <= 20, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in prop::collection::vec("[a-z0-9.ä ]{0,80}", 0..4),
            columns in prop::collection::hash_set("[a-z/:.ö-]{1,60}", 1..12),
            width in 20_usize..200,
        ) {
            let columns: Vec<String> = columns.into_iter().collect();
            let text = drawn(&rows, &columns, width);
            for line in text.lines() {
                prop_assert!(line.trim_end().chars().count() <= width, "{line:?} of {width}");
            }
            let heads = text.lines().filter(|line| line.starts_with("node")).count();
            prop_assert_eq!(text.matches("NO").count(), rows.len() * columns.len(), "{} bands", heads);
        }
    }
}
