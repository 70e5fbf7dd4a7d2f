//! Matrix with hosts in rows and images in columns; each cell has the worst outcome.

use wincimg_cluster::rollout::{HostKind, host_label};
use wincimg_windows::release;

use crate::report::prelude::*;

/// With more hosts than this, rows are builds instead of names.
pub(super) const HOSTS_BY_NAME: usize = 40;

pub(super) struct Matrix {
    pub(super) rows: Vec<String>,
    /// Images in the columns, as indexes into the rollout's.
    pub(super) images: Vec<usize>,
    /// Images that no node accepts, which have no column.
    pub(super) nowhere: Vec<usize>,
    cells: Vec<Option<VerdictOutcome>>,
}

impl Matrix {
    /// The matrix, by name or, for many hosts, by build.
    pub(super) fn new(rollout: &Rollout) -> Self {
        let (rows, row_of) = rows_of(rollout);
        let mut lands: Vec<Option<bool>> = vec![None; rollout.images.len()];
        for placement in &rollout.placements {
            for placed in &placement.images {
                let known = lands[placed.image].unwrap_or(false);
                lands[placed.image] = Some(known || !placement.selection.hosts.is_empty());
            }
        }
        let those = |wanted: bool| -> Vec<usize> {
            let all = 0..lands.len();
            all.filter(|&image| lands[image] == Some(wanted)).collect()
        };
        let images = those(true);
        let mut column_of = vec![0; lands.len()];
        for (column, &image) in images.iter().enumerate() {
            column_of[image] = column;
        }
        let mut matrix = Self {
            cells: vec![None; rows.len() * images.len()],
            rows,
            images,
            nowhere: those(false),
        };
        for placement in &rollout.placements {
            for (image, hosts, finding) in findings(placement) {
                for &host in hosts {
                    matrix.note(row_of[host as usize], column_of[image], finding.outcome);
                }
            }
        }
        matrix
    }

    fn note(&mut self, row: usize, column: usize, outcome: VerdictOutcome) {
        let cell = &mut self.cells[row * self.images.len() + column];
        if cell.is_none_or(|known| outcome > known) {
            *cell = Some(outcome);
        }
    }

    /// Returns true if an image cannot be placed in some row.
    pub(super) fn has_gaps(&self) -> bool {
        self.cells.contains(&None)
    }

    /// Possible outcomes in a cell; none if the image cannot be placed there.
    pub(super) fn cell(&self, row: usize, column: usize) -> Option<VerdictOutcome> {
        self.cells[row * self.images.len() + column]
    }
}

/// Headings of the rows, and the row of each host.
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
        .iter()
        .map(|((build, _), (versions, count))| {
            let versions = versions.as_deref().unwrap_or("version not known");
            let release = build.map(|build| short_release(build.version.build));
            let parts = [
                Some(versions.to_owned()),
                release,
                Some(names::count(*count, "node")),
            ];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
        })
        .collect();
    let places: BTreeMap<_, usize> = counts.into_keys().zip(0..).collect();
    (rows, kinds.map(|kind| places[&key_of(kind)]).collect())
}

/// `Server 2019`.
pub(super) fn short_release(build: u32) -> String {
    let name = release::name_of(build);
    let name = name.strip_prefix("Windows ").unwrap_or(&name);
    name.split(" (").next().unwrap_or(name).to_owned()
}
