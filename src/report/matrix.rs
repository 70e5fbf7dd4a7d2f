//! Hosts down, images across, in each cell the worst that can happen there.

use std::collections::BTreeMap;

use crate::rollout::{HostKind, Rollout, host_label, severity};
use crate::windows::compat::Outcome;

/// More hosts than this are shown by build instead of by name.
pub(super) const HOSTS_BY_NAME: usize = 40;

/// The matrix of a roll-out.
pub(super) struct Matrix {
    /// The headings of the rows.
    pub(super) rows: Vec<String>,
    /// The images across, as indexes into the roll-out's.
    pub(super) images: Vec<usize>,
    cells: Vec<Option<Outcome>>,
}

impl Matrix {
    /// The matrix, by name or, for many hosts, by build.
    pub(super) fn of(rollout: &Rollout) -> Self {
        let (rows, row_of) = rows_of(rollout);
        let mut is_shown = vec![false; rollout.images.len()];
        for placed in rollout
            .placements
            .iter()
            .flat_map(|placement| &placement.images)
        {
            is_shown[placed.image] = true;
        }
        let images: Vec<usize> = (0..is_shown.len())
            .filter(|&image| is_shown[image])
            .collect();
        let mut column_of = vec![0; is_shown.len()];
        for (column, &image) in images.iter().enumerate() {
            column_of[image] = column;
        }
        let mut matrix = Self {
            cells: vec![None; rows.len() * images.len()],
            rows,
            images,
        };
        for placement in &rollout.placements {
            for placed in &placement.images {
                let column = column_of[placed.image];
                for (group, finding) in placement.selection.groups.iter().zip(&placed.findings) {
                    for &host in &group.hosts {
                        matrix.note(row_of[host as usize], column, finding.outcome);
                    }
                }
            }
        }
        matrix
    }

    fn note(&mut self, row: usize, column: usize, outcome: Outcome) {
        let cell = &mut self.cells[row * self.images.len() + column];
        if cell.is_none_or(|known| severity(outcome) > severity(known)) {
            *cell = Some(outcome);
        }
    }

    /// What can happen there; nothing where the image cannot land.
    pub(super) fn cell(&self, row: usize, column: usize) -> Option<Outcome> {
        self.cells[row * self.images.len() + column]
    }
}

/// The rows' headings, and for each host its row.
fn rows_of(rollout: &Rollout) -> (Vec<String>, Vec<usize>) {
    let hosts = &rollout.hosts;
    if hosts.len() <= HOSTS_BY_NAME {
        return (
            hosts.iter().map(host_label).collect(),
            (0..hosts.len()).collect(),
        );
    }
    let kinds = rollout.kind_of.iter().map(|&kind| &rollout.kinds[kind]);
    let key_of = |kind: &HostKind| (kind.build, kind.newest);
    let mut counts: BTreeMap<_, (Option<String>, usize)> = BTreeMap::new();
    for kind in kinds.clone() {
        let (_, count) = counts
            .entry(key_of(kind))
            .or_insert_with(|| (kind.versions(), 0));
        *count += 1;
    }
    let rows = counts
        .values()
        .map(|(versions, count)| format!("{} ({count} hosts)", versions.as_deref().unwrap_or("?")))
        .collect();
    let places: BTreeMap<_, usize> = counts.into_keys().zip(0..).collect();
    (rows, kinds.map(|kind| places[&key_of(kind)]).collect())
}
