//! Questions that are asked before anybody needs the answer, because it will be needed soon: what
//! can be guessed from what was typed need not wait for an answer that only confirms it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use super::error::RegistryError;
use super::manifests::RawManifest;
use super::repository::Repository;

/// An answer that waited longer than this is asked for again: tags move.
const HOLDS: Duration = Duration::from_secs(5);

/// Manifests that were asked for ahead.
#[derive(Default)]
pub(super) struct Foresight(Mutex<HashMap<Key, Asked>>);

/// Repository, tag, and with which rights it is asked.
type Key = (String, String, bool);

type Asked = (Instant, AbortOnDropHandle<Answer>);

type Answer = Result<RawManifest, RegistryError>;

impl Repository {
    /// Asks for what a tag names, for whoever does so next and soon. Where that fails, nobody hears of
    /// it: it is asked again then.
    pub fn foresee_manifest(&self, tag: &str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut asked = self.inner().foresight.lock();
        asked.entry(self.key(tag)).or_insert_with(|| {
            let (repository, tag) = (self.clone(), tag.to_owned());
            let asking = async move { repository.ask_for_manifest(&tag).await };
            (
                Instant::now(),
                AbortOnDropHandle::new(runtime.spawn(asking)),
            )
        });
    }

    /// The answer to a question that was asked ahead, once.
    pub(super) async fn foreseen_manifest(&self, tag: &str) -> Option<Answer> {
        let (asked, answer) = self.inner().foresight.lock().remove(&self.key(tag))?;
        if asked.elapsed() > HOLDS {
            return None;
        }
        let answer = answer.await.ok()?;
        let is_certain = match &answer {
            Ok(_) => true,
            Err(error) => self.means_missing(error),
        };
        is_certain.then_some(answer)
    }

    fn key(&self, tag: &str) -> Key {
        (self.to_string(), tag.to_owned(), self.is_pushed_to())
    }
}

impl Foresight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
