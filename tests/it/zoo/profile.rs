//! What a profile can say of a registry: who may ask, and what it does otherwise than
//! `distribution`, each with the public source that says so.

use std::fmt;

/// A product, as its users meet it.
#[derive(Debug)]
pub struct Profile {
    pub name: &'static str,
    /// As references name it.
    pub host: &'static str,
    /// Where its API is.
    pub api: &'static str,
    /// What the user's repositories begin with.
    pub prefix: &'static str,
    pub login: Login,
    /// The user's name, and the key in Docker's `config.json`.
    pub user: &'static str,
    pub key: &'static str,
    /// Flags without which it takes no image.
    pub flags: &'static [&'static str],
    pub rows: &'static [Row],
}

/// A difference, and where it is written down.
pub type Row = (Quirk, &'static str);

/// How a registry wants to be convinced.
#[derive(Debug, Clone, Copy)]
pub enum Login {
    /// Everybody reads, nobody writes.
    Open,
    /// A name and a password with every request.
    Password,
    /// A token from `https://HOST/PATH`.
    Token {
        host: &'static str,
        path: &'static str,
        service: Option<&'static str>,
    },
}

/// One way in which a registry differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// What a token's answer is made of.
    TokenAnswer(&'static str),
    /// The scope that the challenge of `/v2/` names, though nobody asked for it.
    PlaceholderScope(&'static str),
    /// A second challenge beside that for a token.
    BasicToo,
    /// Every challenge names the scope `*`, and a token opens whatever its user may do.
    ScopeStar,
    /// The credential is a refresh token, exchanged by POST.
    RefreshToken,
    /// Who has no login and wants a token to push is refused with this status.
    TokenRefused(u16),
    /// Of several scopes a token gets the last alone.
    LastScopeAlone,
    /// Anybody may read.
    PublicReads,
    /// Who comes without proof is answered with this status and no challenge.
    Unchallenged(u16),
    /// A repository that is not there yet needs a token for pushes even to be looked at.
    UnknownNeedsPush,
    /// What is not there is answered with this status.
    MissingIs(u16),
    /// Repositories are made before the first push.
    CreateFirst,
    /// A repository's name has two parts.
    TwoParts,
    /// Every mount is answered with this status.
    Mount(u16),
    /// No piece may be larger; the status that says so.
    PieceAtMost(u64, u16),
    /// No piece but the last may be smaller.
    PieceAtLeast(u64),
    /// No body may be larger, 413.
    BodyAtMost(u64),
    /// Only the whole blob in one PUT is taken; the status that says so.
    NoPieces(u16),
    /// No request that closes an upload may bring bytes; the status that says so.
    EmptyEnd(u16),
    /// A piece needs `Content-Range`.
    RangeNeeded,
    /// A piece is answered with this status.
    PieceIs(u16),
    /// `Range` stays at the end of the first chunk.
    StuckRange,
    /// `Range` is that of the last chunk.
    LastRange,
    /// `Range` of an open upload ends at the number of its bytes.
    CountedRange,
    /// A manifest cannot be deleted; the status that says so.
    NoDelete(u16),
    /// Where an upload goes on.
    Location(Place),
    /// Blobs come from another host, which takes no `Authorization`.
    BlobsFrom(&'static str),
    /// A page of tags has no more entries, whatever was asked for.
    PageAtMost(usize),
    /// A page of more entries is an error, 400.
    PageRefused(usize),
    /// How a page names the next.
    Next(Next),
    /// Manifests in Docker's words are refused with this status.
    OciOnly(u16),
    /// An OCI index may not name manifests in Docker's words.
    OneFamily,
    /// The first manifest is refused: too many requests.
    Limited,
    /// What an error looks like.
    Errors(&'static str),
}

/// Where an upload goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An absolute URL with a `_state` that has to come back.
    State,
    /// Another URL after each piece; the one before is gone.
    Once,
    /// An absolute URL with `http:`, behind a proxy with TLS.
    PlainHttp,
}

/// How a page names the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// By a token instead of the last tag.
    Token,
    /// Without the repository's first part.
    WithoutPrefix,
    /// Below another path, which the host does not serve.
    Below(&'static str),
    /// After every page that has tags.
    AfterTags,
    /// Not at all; everything is in one page.
    AllAtOnce,
}

impl Profile {
    pub fn has(&self, quirk: Quirk) -> bool {
        self.find(|other| (other == quirk).then_some(())).is_some()
    }

    /// The first thing that a question finds among the differences.
    pub fn find<T>(&self, question: impl Fn(Quirk) -> Option<T>) -> Option<T> {
        self.rows.iter().find_map(|(quirk, _)| question(*quirk))
    }

    /// The host that blobs come from, where it is another one.
    pub fn blobs_from(&self) -> Option<&'static str> {
        self.find(|quirk| match quirk {
            Quirk::BlobsFrom(host) => Some(host),
            _ => None,
        })
    }

    /// All hosts that belong to it.
    pub fn hosts(&self) -> Vec<&'static str> {
        let mut hosts = vec![self.api];
        if let Login::Token { host, .. } = self.login {
            hosts.push(host);
        }
        hosts.extend(self.blobs_from());
        hosts.dedup();
        hosts
    }

    /// As many tags as show how it pages, and the last page is not full.
    pub fn tags(&self) -> usize {
        let page = self.find(|quirk| match quirk {
            Quirk::PageAtMost(page) | Quirk::PageRefused(page) => Some(page),
            _ => None,
        });
        let pages = self.find(|quirk| matches!(quirk, Quirk::Next(_)).then_some(()));
        match (page, pages) {
            (Some(page), _) => page + 7,
            (None, Some(())) => 1007,
            (None, None) => 7,
        }
        .min(if self.has(Quirk::Next(Next::AllAtOnce)) {
            900
        } else {
            usize::MAX
        })
    }
}

/// A size as people write it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.0 >> 20)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::State => "an upload URL's query must be repeated unchanged",
            Self::Once => "the upload URL changes after each chunk",
            Self::PlainHttp => "an upload URL behind a TLS proxy may be `http:`",
        })
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("the next page has a token"),
            Self::WithoutPrefix => {
                f.write_str("the link to the next page lacks the first path segment")
            }
            Self::Below(path) => {
                write!(
                    f,
                    "the link to the next page is below `{path}`, which does not exist"
                )
            }
            Self::AfterTags => f.write_str("the last page links to an empty page"),
            Self::AllAtOnce => f.write_str("a list has all tags, whatever limit is requested"),
        }
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TokenAnswer(answer) => write!(f, "token response: `{answer}`"),
            Self::PlaceholderScope(scope) => {
                write!(f, "the challenge of `/v2/` has the scope `{scope}`")
            }
            Self::BasicToo => write!(f, "a second challenge for a password"),
            Self::ScopeStar => {
                write!(
                    f,
                    "every challenge has the scope `*`; a token has all rights of its user"
                )
            }
            Self::RefreshToken => write!(f, "the credential is a refresh token, exchanged by POST"),
            Self::TokenRefused(status) => {
                write!(f, "an anonymous request for a push token: {status}")
            }
            Self::LastScopeAlone => write!(f, "a token for two scopes has only the last"),
            Self::PublicReads => write!(f, "anonymous pulls"),
            Self::Unchallenged(status) => {
                write!(f, "a request without credentials: {status}, no challenge")
            }
            Self::UnknownNeedsPush => {
                write!(
                    f,
                    "a repository that does not exist, with a pull token: 401"
                )
            }
            Self::MissingIs(status) => write!(f, "a tag that does not exist: {status}"),
            Self::CreateFirst => write!(f, "repositories must be created before the first push"),
            Self::TwoParts => {
                write!(
                    f,
                    "names have two parts; slashes in the path of a mirrored image become dashes"
                )
            }
            Self::Mount(202) => write!(f, "mount: 202, nothing is mounted"),
            Self::Mount(status) => write!(f, "a mount that is refused: {status}"),
            Self::PieceAtMost(most, status) => {
                write!(f, "a chunk of more than {}: {status}", Size(most))
            }
            Self::PieceAtLeast(least) => {
                write!(f, "chunks except the last have at least {}", Size(least))
            }
            Self::BodyAtMost(most) => write!(f, "a body of more than {}: 413", Size(most)),
            Self::NoPieces(_) => write!(f, "blobs in one PUT; chunks are refused"),
            Self::EmptyEnd(status) => {
                write!(f, "blobs by PATCH; a PUT with a body: {status}")
            }
            Self::RangeNeeded => write!(f, "chunks except the first require `Content-Range`"),
            Self::PieceIs(status) => write!(f, "an accepted chunk: {status} instead of 202"),
            Self::StuckRange => write!(f, "`Range` stays at the end of the first chunk"),
            Self::LastRange => write!(f, "`Range` is that of the last chunk"),
            Self::CountedRange => {
                write!(f, "`Range` of an open upload is one byte too long")
            }
            Self::NoDelete(status) => write!(f, "deleting a manifest: {status}"),
            Self::Location(place) => place.fmt(f),
            Self::BlobsFrom(host) => write!(f, "blobs are on another host, such as `{host}`"),
            Self::PageAtMost(page) => write!(f, "at most {page} tags per page"),
            Self::PageRefused(page) => write!(f, "a page of more than {page} tags: 400"),
            Self::Next(next) => next.fmt(f),
            Self::OciOnly(status) => write!(f, "Docker manifests: {status}"),
            Self::OneFamily => write!(f, "an OCI index of Docker manifests: 400"),
            Self::Limited => write!(f, "too many pulls: 429"),
            Self::Errors(body) => write!(f, "error response: `{body}`"),
        }
    }
}
