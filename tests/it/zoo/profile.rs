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
    /// `Range` stays at the end of the first piece.
    StuckRange,
    /// `Range` is that of the last piece.
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
            Self::State => "an upload goes on at a URL whose query has to come back as it is",
            Self::Once => "an upload goes on at another URL after each piece",
            Self::PlainHttp => "behind a TLS proxy an upload may go on at an `http:` URL",
        })
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("the next page is named by a token"),
            Self::WithoutPrefix => {
                f.write_str("the link to the next page lacks the first part of the path")
            }
            Self::Below(path) => {
                write!(
                    f,
                    "the link to the next page leads below `{path}`, where nothing is"
                )
            }
            Self::AfterTags => f.write_str("the last page links to an empty one"),
            Self::AllAtOnce => f.write_str("all tags come at once, however many were asked for"),
        }
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TokenAnswer(answer) => write!(f, "a token comes as `{answer}`"),
            Self::PlaceholderScope(scope) => write!(f, "`/v2/` asks for the scope `{scope}`"),
            Self::BasicToo => write!(f, "there is a challenge for a password too"),
            Self::ScopeStar => {
                write!(
                    f,
                    "every challenge names the scope `*`, and a token opens all that its user may do"
                )
            }
            Self::RefreshToken => write!(f, "the login is a refresh token, exchanged by POST"),
            Self::TokenRefused(status) => {
                write!(f, "a token to push, wanted without a login, is {status}")
            }
            Self::LastScopeAlone => write!(f, "of two scopes a token gets only the last"),
            Self::PublicReads => write!(f, "everybody may read"),
            Self::Unchallenged(status) => {
                write!(f, "a request without proof is {status}, with no challenge")
            }
            Self::UnknownNeedsPush => {
                write!(
                    f,
                    "a repository that does not exist is 401 to a token for pulls"
                )
            }
            Self::MissingIs(status) => write!(f, "a tag that does not exist is {status}"),
            Self::CreateFirst => write!(f, "a repository has to be created before the first push"),
            Self::TwoParts => {
                write!(
                    f,
                    "a name has two parts; the path of a mirrored image gets dashes for slashes"
                )
            }
            Self::Mount(202) => write!(f, "a mount may be 202: nothing was mounted"),
            Self::Mount(status) => write!(f, "a mount that it does not grant is {status}"),
            Self::PieceAtMost(most, status) => {
                write!(f, "a piece of more than {} is {status}", Size(most))
            }
            Self::PieceAtLeast(least) => {
                write!(f, "every piece but the last has at least {}", Size(least))
            }
            Self::BodyAtMost(most) => write!(f, "a body of more than {} is 413", Size(most)),
            Self::NoPieces(_) => write!(f, "a blob comes in one PUT, and pieces are refused"),
            Self::EmptyEnd(status) => {
                write!(f, "a blob comes by PATCH, and a PUT with bytes is {status}")
            }
            Self::RangeNeeded => write!(f, "every piece but the first needs `Content-Range`"),
            Self::PieceIs(status) => write!(f, "a piece that is taken is {status}, not 202"),
            Self::StuckRange => write!(f, "`Range` stays at the end of the first piece"),
            Self::LastRange => write!(f, "`Range` is that of the last piece"),
            Self::CountedRange => {
                write!(f, "`Range` of an open upload ends one byte late")
            }
            Self::NoDelete(status) => write!(f, "a manifest cannot be deleted ({status})"),
            Self::Location(place) => place.fmt(f),
            Self::BlobsFrom(host) => write!(f, "blobs come from another host, such as `{host}`"),
            Self::PageAtMost(page) => write!(f, "a page has {page} tags at most"),
            Self::PageRefused(page) => write!(f, "a page of more than {page} tags is 400"),
            Self::Next(next) => next.fmt(f),
            Self::OciOnly(status) => write!(f, "manifests in Docker's format are {status}"),
            Self::OneFamily => write!(f, "an OCI index of manifests in Docker's format is 400"),
            Self::Limited => write!(f, "too many pulls are 429"),
            Self::Errors(body) => write!(f, "an error is `{body}`"),
        }
    }
}
