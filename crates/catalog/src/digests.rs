//! Expected digests of a file in the catalog.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wincimg_common::digest::Digest;

/// Invalid digests: of the wrong length or alphabet, or other than that in the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DigestsError(String);

/// The strongest of the digests that the catalog lists for a file: the base64 texts of its entry, and
/// the SHA-1 that ends the stem of its name.
pub(super) fn read_digest(
    sha256: Option<&str>,
    sha1: Option<&str>,
    name: &str,
) -> Result<Option<Digest>, DigestsError> {
    let sha256 = sha256.map(decode::<32>).transpose()?;
    let sha1 = sha1.map(decode::<20>).transpose()?;
    let in_name = sha1_in_name(name);
    if let (Some(sha1), Some(in_name)) = (sha1, in_name)
        && sha1 != in_name
    {
        let (sha1, in_name) = (hex::encode(sha1), hex::encode(in_name));
        let problem = format!("the digest is SHA-1 {sha1}, but the file's name has {in_name}");
        return Err(DigestsError(problem));
    }
    let sha256 = sha256.map(|bytes| Digest::new("sha256", &bytes));
    let sha1 = sha1.or(in_name);
    Ok(sha256.or_else(|| sha1.map(|bytes| Digest::new("sha1", &bytes))))
}

/// A digest as Microsoft's tools write it: `SHA-1 90e8…`.
pub(super) fn describe(digest: &Digest) -> String {
    let algorithm = digest.algorithm().to_ascii_uppercase();
    format!("{} {}", algorithm.replace("SHA", "SHA-"), digest.digest())
}

fn decode<const N: usize>(text: &str) -> Result<[u8; N], DigestsError> {
    let decoded = STANDARD.decode(text).ok();
    let digest = decoded.and_then(|bytes| bytes.try_into().ok());
    digest.ok_or_else(|| {
        let text: String = text.chars().take(100).collect();
        let problem = format!("invalid digest {text:?}: expected base64 of its algorithm's length");
        DigestsError(problem)
    })
}

/// `windows10.0-kb4549949-x64_90e8805e69944530b8d4d4877c7609b9a9e68d81.msu` ends in one.
fn sha1_in_name(name: &str) -> Option<[u8; 20]> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (_, digits) = stem.rsplit_once('_')?;
    hex::decode(digits).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "oart-x-none_e3fa9c9103bc509dcdf7e971ca3cbea0c18a7b0d.cab";
    const SHA1: &str = "4/qckQO8UJ3N9+lxyjy+oMGKew0=";

    #[test]
    fn the_sha1_of_the_name_replaces_a_missing_one() {
        let from_name = read_digest(None, None, NAME).unwrap();
        assert_eq!(from_name, read_digest(None, Some(SHA1), "a.cab").unwrap());
        assert_eq!(read_digest(None, None, "a_b.cab").unwrap(), None);
    }

    #[test]
    fn a_name_that_contradicts_the_digest_is_an_error() {
        let error = read_digest(None, Some("2jmj7l5rSw0yVb/vlWAYkK/YBwk="), NAME).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the digest is SHA-1 da39a3ee5e6b4b0d3255bfef95601890afd80709, \
             but the file's name has e3fa9c9103bc509dcdf7e971ca3cbea0c18a7b0d"
        );
    }

    #[test]
    fn a_digest_of_the_wrong_length_is_an_error() {
        assert!(read_digest(Some(SHA1), None, "a.cab").is_err());
        assert!(read_digest(None, Some("%%%"), "a.cab").is_err());
    }

    #[test]
    fn a_sha256_is_better_than_a_sha1() {
        let sha256 = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        let digest = read_digest(Some(sha256), Some(SHA1), "a").unwrap();
        let expected = "SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(describe(&digest.unwrap()), expected);
    }
}
