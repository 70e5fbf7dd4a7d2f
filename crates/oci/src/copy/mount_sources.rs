//! Repositories of the target's registry from which a blob can be mounted.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::{Mutex, OnceCell};

use crate::document::Descriptor;
use crate::remote::Repository;

/// Smaller blobs upload faster than the search takes.
const MIN_SEARCH_SIZE: u64 = 4 * 1024 * 1024;
/// Repositories queried at once.
const PARALLEL_QUERIES: usize = 16;

/// The repositories of each registry, listed on first use.
#[derive(Default)]
pub(super) struct MountSources(Mutex<HashMap<String, Listing>>);

type Listing = Arc<OnceCell<Vec<Repository>>>;

impl MountSources {
    /// Returns the name of another repository in `target`'s registry that has the blob.
    pub(super) async fn find_mount_source(
        &self,
        target: &Repository,
        blob: &Descriptor,
    ) -> Option<String> {
        if blob.size < MIN_SEARCH_SIZE {
            return None;
        }
        let listing = self
            .0
            .lock()
            .await
            .entry(target.host().to_owned())
            .or_default()
            .clone();
        let neighbours = listing.get_or_init(|| target.mount_candidates()).await;
        let mut questions = Vec::with_capacity(neighbours.len());
        for neighbour in neighbours {
            if neighbour.name() != target.name() {
                questions.push(has(neighbour, blob));
            }
        }
        let mut answers = stream::iter(questions).buffer_unordered(PARALLEL_QUERIES);
        while let Some(answer) = answers.next().await {
            if answer.is_some() {
                return answer;
            }
        }
        None
    }
}

/// Returns the repository's name if it has the blob. A repository without read access counts as
/// without.
async fn has(repository: &Repository, blob: &Descriptor) -> Option<String> {
    let has = repository.has_described_blob(blob).await.unwrap_or(false);
    has.then(|| repository.name().to_owned())
}
