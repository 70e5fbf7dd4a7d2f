//! Questions that are asked before anybody needs the answer, because it will be needed soon: what
//! can be guessed from what was typed need not wait for an answer that only confirms it. And the one
//! that need not be asked at all: whether there is a tag, where all tags were listed just now.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use wincimg_common::lock;

use super::client::Registry;
use super::error::RegistryError;
use super::manifests::RawManifest;
use super::repository::Repository;
use crate::document::{Descriptor, Digest};

/// An answer that waited longer than this is asked for again: tags move.
const HOLDS: Duration = Duration::from_secs(5);

/// What was asked for ahead.
#[derive(Default)]
pub(super) struct Foresight {
    manifests: Questions<Named, RawManifest>,
    referrers: Questions<About, Vec<Descriptor>>,
    interest: OnceLock<Interest>,
    /// The tags of repositories, and when they were listed.
    tags: Mutex<TagsByRepository>,
}

type TagsByRepository = HashMap<String, (Instant, HashSet<String>)>;

/// Repository, tag, and with which rights it is asked.
type Named = (String, String, bool);

/// Repository, what is to be about something, and that thing.
type About = (String, String, Digest);

/// Questions that are on their way.
struct Questions<Q, A>(Mutex<HashMap<Q, Asked<A>>>);

type Asked<A> = (Instant, AbortOnDropHandle<Answer<A>>);

type Answer<A> = Result<A, RegistryError>;

/// Whether something about an image is of use.
type Concerns = dyn Fn(&Repository, &Digest) -> bool + Send + Sync;

/// Somebody will want to know what of a type is about images.
struct Interest {
    artifact_type: String,
    concerns: Box<Concerns>,
}

impl Registry {
    /// Says that what of a type is about base images will be asked for, but for those that do not
    /// concern the one who asks. It is asked as soon as an image is known to be the base.
    pub fn will_ask_about_bases(
        &self,
        artifact_type: &str,
        concerns: impl Fn(&Repository, &Digest) -> bool + Send + Sync + 'static,
    ) {
        // Whoever says so again says the same.
        let _ = self.0.foresight.interest.set(Interest {
            artifact_type: artifact_type.to_owned(),
            concerns: Box::new(concerns),
        });
    }
}

impl Repository {
    /// Asks for what a tag names, for whoever does so next and soon. Where that fails, nobody hears of
    /// it: it is asked again then.
    pub fn foresee_manifest(&self, tag: &str) {
        let (repository, tag) = (self.clone(), tag.to_owned());
        let named = self.named(&tag);
        let asking = async move { repository.ask_for_manifest(&tag).await };
        self.inner().foresight.manifests.ask(named, asking);
    }

    /// The answer to a question that was asked ahead, once.
    pub(super) async fn foreseen_manifest(&self, tag: &str) -> Option<Answer<RawManifest>> {
        let asked = self.inner().foresight.manifests.take(&self.named(tag))?;
        let answer = asked.await.ok()?;
        let is_certain = match &answer {
            Ok(_) => true,
            Err(error) => self.means_missing(error),
        };
        is_certain.then_some(answer)
    }

    /// Asks what is about a base image, if [`Registry::will_ask_about_bases`] said that somebody will.
    pub fn foresee_questions_about(&self, base: &Digest) {
        let foresight = &self.inner().foresight;
        let Some(interest) = foresight.interest.get() else {
            return;
        };
        if (interest.concerns)(self, base) {
            let about = self.about(&interest.artifact_type, base);
            let (repository, (_, artifact_type, subject)) = (self.clone(), about.clone());
            let asking =
                async move { repository.ask_for_referrers(&subject, &artifact_type).await };
            foresight.referrers.ask(about, asking);
        }
    }

    /// What is about an image, where that was asked ahead, once. A failure was tried again already.
    pub(super) async fn foreseen_referrers(
        &self,
        subject: &Digest,
        artifact_type: &str,
    ) -> Option<Answer<Vec<Descriptor>>> {
        let about = self.about(artifact_type, subject);
        self.inner().foresight.referrers.take(&about)?.await.ok()
    }

    /// Takes note of all tags that there are.
    pub(super) fn note_tags(&self, tags: HashSet<String>) {
        let noted = (Instant::now(), tags);
        self.inner()
            .foresight
            .tags()
            .insert(self.to_string(), noted);
    }

    /// Whether a tag was missing when all were listed, a short while ago.
    pub(super) fn lacked_tag(&self, tag: &str) -> bool {
        let noted = self.inner().foresight.tags();
        let noted = noted.get(&self.to_string());
        noted.is_some_and(|(listed, tags)| listed.elapsed() <= HOLDS && !tags.contains(tag))
    }

    /// Forgets which tags there are: there may be another one now.
    pub(super) fn forget_tags(&self) {
        self.inner().foresight.tags().remove(&self.to_string());
    }

    fn named(&self, tag: &str) -> Named {
        (self.to_string(), tag.to_owned(), self.is_pushed_to())
    }

    fn about(&self, artifact_type: &str, subject: &Digest) -> About {
        (self.to_string(), artifact_type.to_owned(), subject.clone())
    }
}

impl Foresight {
    fn tags(&self) -> MutexGuard<'_, TagsByRepository> {
        lock(&self.tags)
    }
}

impl<Q: Eq + Hash, A: Send + 'static> Questions<Q, A> {
    /// Asks, unless it was asked already.
    fn ask(&self, question: Q, asking: impl Future<Output = Answer<A>> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            self.lock().entry(question).or_insert_with(|| {
                let answer = AbortOnDropHandle::new(runtime.spawn(asking));
                (Instant::now(), answer)
            });
        }
    }

    /// What is to be the answer, if it was asked for a short while ago.
    fn take(&self, question: &Q) -> Option<AbortOnDropHandle<Answer<A>>> {
        let (asked, answer) = self.lock().remove(question)?;
        (asked.elapsed() <= HOLDS).then_some(answer)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Q, Asked<A>>> {
        lock(&self.0)
    }
}

impl<Q, A> Default for Questions<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
