//! Profile of a registry: its login, and its differences from `distribution`, each with its public
//! source.

use std::fmt;

/// A product.
#[derive(Debug)]
pub struct Profile {
    pub name: &'static str,
    /// Its name in references.
    pub host: &'static str,
    /// Host of its API.
    pub api: &'static str,
    /// Prefix of the user's repositories.
    pub prefix: &'static str,
    pub login: Login,
    /// The user's name, and the key in Docker's `config.json`.
    pub user: &'static str,
    pub key: &'static str,
    /// Flags required to push an image.
    pub flags: &'static [&'static str],
    pub rows: &'static [Row],
}

impl Profile {
    /// A registry with passwords that does not differ from `distribution`.
    pub const fn at(name: &'static str, host: &'static str) -> Self {
        Self {
            name,
            host,
            api: host,
            prefix: "me",
            login: Login::Password,
            user: "me",
            key: host,
            flags: &[],
            rows: &[],
        }
    }
}

/// A difference, and its source.
pub type Row = (Quirk, &'static str);

/// Authentication of a registry.
#[derive(Debug, Clone, Copy)]
pub enum Login {
    /// Everyone can read, no one can write.
    Open,
    /// User and password in every request.
    Password,
    /// A token from `https://HOST/PATH`.
    Token {
        host: &'static str,
        path: &'static str,
        service: &'static str,
    },
}

/// A difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// Field of a token response.
    TokenAnswer(&'static str),
    /// The scope in the challenge of `/v2/`, though none was requested.
    PlaceholderScope(&'static str),
    /// A second challenge besides that for a token.
    BasicToo,
    /// Every challenge has the scope `*`, and a token has all of its user's permissions.
    ScopeStar,
    /// The credential is a refresh token, exchanged by POST.
    RefreshToken,
    /// A token to push is refused with this status to anonymous clients.
    TokenRefused(u16),
    /// Of several scopes, a token gets only the last.
    LastScopeAlone,
    /// Anonymous clients can read.
    PublicReads,
    /// Requests without credentials get this status and no challenge.
    Unchallenged(u16),
    /// Even reading a repository that does not exist requires a token to push.
    UnknownNeedsPush,
    /// Status for missing content.
    MissingIs(u16),
    /// Repositories must be created before the first push.
    CreateFirst,
    /// Repository names have two parts.
    TwoParts,
    /// Status of every mount.
    Mount(u16),
    /// Maximum chunk size; the status of a refusal.
    PieceAtMost(u64, u16),
    /// Minimum chunk size, except for the last.
    PieceAtLeast(u64),
    /// Maximum body size, 413.
    BodyAtMost(u64),
    /// Only the whole blob in one PUT is accepted; the status of a refusal.
    NoPieces(u16),
    /// The request that closes an upload must be empty; the status of a refusal.
    EmptyEnd(u16),
    /// A chunk requires `Content-Range`.
    RangeNeeded,
    /// Status of a chunk.
    PieceIs(u16),
    /// `Range` stays at the end of the first chunk.
    StuckRange,
    /// `Range` is that of the last chunk.
    LastRange,
    /// `Range` of an open upload ends at the number of its bytes.
    CountedRange,
    /// Manifests cannot be deleted; the status of a refusal.
    NoDelete(u16),
    /// Location of an upload.
    Location(UploadLocation),
    /// Blobs are on another host, which refuses `Authorization`.
    BlobsFrom(&'static str),
    /// Maximum number of tags on a page, whatever was requested.
    PageAtMost(usize),
    /// Requesting a larger page is an error, 400.
    PageRefused(usize),
    /// Form of the link to the next page.
    NextLink(NextLink),
    /// Docker manifests are refused with this status.
    OciOnly(u16),
    /// An OCI index must not contain Docker manifests.
    OneFamily,
    /// The first manifest is refused: too many requests.
    Limited,
    /// Format of errors.
    Errors(&'static str),
}

/// Location of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadLocation {
    /// An absolute URL with a `_state` that must be sent back.
    State,
    /// A new URL after each chunk; the previous one is invalid.
    Once,
    /// An absolute URL with `http:`, behind a TLS proxy.
    PlainHttp,
}

/// Form of the link to the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLink {
    /// A token instead of the last tag.
    Token,
    /// Lacks the repository's first part.
    WithoutPrefix,
    /// Below another path, which the host does not serve.
    Below(&'static str),
    /// On every page that has tags.
    AfterTags,
    /// None; everything is on one page.
    AllAtOnce,
}

impl Profile {
    pub fn has(&self, quirk: Quirk) -> bool {
        self.find(|other| (other == quirk).then_some(())).is_some()
    }

    /// Returns the first match among the differences.
    pub fn find<T>(&self, question: impl Fn(Quirk) -> Option<T>) -> Option<T> {
        self.rows.iter().find_map(|(quirk, _)| question(*quirk))
    }

    /// Host of blobs, if it is another one.
    pub fn blobs_from(&self) -> Option<&'static str> {
        self.find(|quirk| match quirk {
            Quirk::BlobsFrom(host) => Some(host),
            _ => None,
        })
    }

    /// All hosts of the product.
    pub fn hosts(&self) -> Vec<&'static str> {
        let mut hosts = vec![self.api];
        if let Login::Token { host, .. } = self.login {
            hosts.push(host);
        }
        hosts.extend(self.blobs_from());
        hosts.dedup();
        hosts
    }

    /// Enough tags to show paging, with an incomplete last page.
    pub fn tags(&self) -> usize {
        let page = self.find(|quirk| match quirk {
            Quirk::PageAtMost(page) | Quirk::PageRefused(page) => Some(page),
            _ => None,
        });
        let pages = self.find(|quirk| matches!(quirk, Quirk::NextLink(_)).then_some(()));
        match (page, pages) {
            (Some(page), _) => page + 7,
            (None, Some(())) => 1007,
            (None, None) => 7,
        }
        .min(if self.has(Quirk::NextLink(NextLink::AllAtOnce)) {
            900
        } else {
            usize::MAX
        })
    }
}

/// A size in readable form.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.0 >> 20)
    }
}

impl fmt::Display for UploadLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::State => "an upload URL's query must be repeated unchanged",
            Self::Once => "the upload URL changes after each chunk",
            Self::PlainHttp => "an upload URL behind a TLS proxy may be `http:`",
        })
    }
}

impl fmt::Display for NextLink {
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
            Self::NextLink(next) => next.fmt(f),
            Self::OciOnly(status) => write!(f, "Docker manifests: {status}"),
            Self::OneFamily => write!(f, "an OCI index of Docker manifests: 400"),
            Self::Limited => write!(f, "too many pulls: 429"),
            Self::Errors(body) => write!(f, "error response: `{body}`"),
        }
    }
}
