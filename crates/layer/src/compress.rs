//! Compression of a layer in blocks, reproducible on any number of cores: a compressed block
//! depends on its bytes and on the 32 KiB before it.
//!
//! Gzip is one member: like in pigz, each block is deflated by itself, ends on a byte (a sync
//! flush), and has the end of the previous block as its dictionary. Noise is stored. A block that
//! becomes very small is compressed again at a higher level, where repetitive data gains most and
//! costs least. Measured on tars in the order of layers ([`super::order`]), MB and seconds of one
//! core:
//!
//! | level | a site in HTML, 324 MB | source code, 212 MB | random words, 270 MB |
//! |-|-|-|-|
//! | 3 | 20.9, 0.49 s | 31.3, 0.80 s | 70.8, 1.69 s |
//! | 4 | 18.8, 0.58 s | 29.9, 0.99 s | 65.3, 2.20 s |
//! | 5 | 17.7, 0.68 s | 29.0, 1.12 s | 64.3, 2.53 s |
//! | 6 | 17.4, 0.85 s | 28.7, 1.48 s | 61.3, 5.78 s |
//! | 7 | 15.4, 1.18 s | 27.8, 2.26 s | 58.8, 14.17 s |
//! | **4, and 7 for a sixteenth** | **16.3, 1.04 s** | **29.3, 1.13 s** | **65.3, 2.20 s** |
//!
//! Without the dictionary level 5 made source code 0.8 % larger; blocks of 256 KiB instead of 1 MiB as
//! much. zlib-rs makes the same bytes whatever the processor can do. zlib-ng makes the same ones at the
//! same speed (0.96 to 1.05 of it), and wants `CMake`. isal's highest level is 2.2 to 3 times as fast,
//! but makes 17 % more than level 5, and so larger layers than `BuildKit`. libdeflate makes as much as
//! level 5 at 1.25 times its speed, but it cannot end a block without ending the member, and a gzip of
//! many members is cut short after the first by readers such as Python's `tarfile` in stream mode.
//!
//! Zstandard is one frame a block of 4 MiB. Of the same tars, MB and seconds of one core:
//!
//! | level 3 | the site | source code | random words |
//! |-|-|-|-|
//! | as it is | 9.7, 0.19 s | 24.1, 0.35 s | 67.0, 0.84 s |
//! | **looking over all of a block, for 6 letters at least** | **9.4, 0.18 s** | **24.1, 0.34 s** | **63.9, 0.74 s** |
//! | for 7 | 9.5, 0.21 s | 24.5, 0.33 s | 63.4, 0.69 s |

mod noise;

use std::io;
use std::ops::Range;

use flate2::{Compress, Compression as Level, Crc, FlushCompress};
use zstd::zstd_safe::{CParameter, version_number};

/// Compression of a layer's tar stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub enum Compression {
    /// Supported by every runtime.
    #[default]
    Gzip,
    /// Smaller and faster; requires Docker 23 or containerd 1.5.
    Zstd,
}

/// Level of most blocks.
const FAST: Level = Level::new(4);

/// Level that finds the longest matches; with few matches it takes up to seven times as long.
const BEST: Level = Level::new(7);

/// Compression ratios at which a block is compressed again, because it consists of matches. At a
/// higher ratio it is almost empty, and already as small as deflate can make it.
const REPETITIVE: Range<usize> = 16..512;

const ZSTD_LEVEL: i32 = 3;

/// Minimum match length of zstd. A shorter distant match costs as much as its letters: with the
/// level's own 5, random words became larger than with gzip.
const ZSTD_MATCH: u32 = 6;

/// Window of zstd as a power of two: a whole block.
const ZSTD_WINDOW: u32 = 22;

/// No name, no time, unknown system: the same bytes everywhere.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Window of deflate.
const WINDOW: usize = 32 << 10;

/// An empty final deflate block.
const LAST_DEFLATE_BLOCK: [u8; 2] = [0x03, 0x00];

impl Compression {
    /// The layer's media type in an OCI image.
    pub const fn oci_media_type(self) -> &'static str {
        match self {
            Self::Gzip => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }

    /// Identifies everything but the tar that determines a blob's bytes. A test of
    /// [`super::diff_id::EDITION`] detects changes for gzip; the output of zstd changes from
    /// version to version.
    pub(super) fn format_id(self) -> String {
        match self {
            Self::Gzip => "gzip".to_owned(),
            Self::Zstd => {
                let version = version_number();
                format!("zstd {version} {ZSTD_LEVEL} {ZSTD_MATCH} {ZSTD_WINDOW}")
            }
        }
    }

    /// Block size in bytes of the tar stream.
    pub(super) const fn block_size(self) -> usize {
        match self {
            Self::Gzip => 1 << 20,
            Self::Zstd => 4 << 20,
        }
    }

    /// The part of a block that the next one may refer to.
    pub(super) fn window(self, block: &[u8]) -> &[u8] {
        match self {
            Self::Gzip => last(block, WINDOW),
            Self::Zstd => &[],
        }
    }

    /// Maximum number of compressing threads: one hashing thread and one writer cannot keep up with
    /// more. Zstandard's threads also need more memory, several blocks of 4 MiB each.
    pub(super) const fn most_compressors(self) -> usize {
        match self {
            Self::Gzip => 12,
            Self::Zstd => 4,
        }
    }

    /// Header of the blob.
    pub(super) const fn header(self) -> &'static [u8] {
        match self {
            Self::Gzip => &GZIP_HEADER,
            Self::Zstd => &[],
        }
    }

    /// Trailer of the blob; `crc` is that of the whole tar stream.
    pub(super) fn trailer(self, crc: &Crc) -> Vec<u8> {
        match self {
            Self::Gzip => [
                LAST_DEFLATE_BLOCK.as_slice(),
                &crc.sum().to_le_bytes(),
                &crc.amount().to_le_bytes(),
            ]
            .concat(),
            Self::Zstd => Vec::new(),
        }
    }
}

/// A compressed block, with its part of gzip's checksum.
pub(super) struct EncodedBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) crc: Crc,
}

/// Compressor of blocks; each thread has its own.
pub(super) enum Encoder {
    Gzip,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Encoder {
    pub(super) fn new(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::Gzip => Self::Gzip,
            Compression::Zstd => {
                let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
                compressor.include_checksum(true)?;
                compressor.set_parameter(CParameter::MinMatch(ZSTD_MATCH))?;
                compressor.set_parameter(CParameter::WindowLog(ZSTD_WINDOW))?;
                Self::Zstd(compressor)
            }
        })
    }

    /// Compresses a block of the stream; `before` is the window of the previous block.
    pub(super) fn encode(&mut self, before: &[u8], block: &[u8]) -> io::Result<EncodedBlock> {
        let mut crc = Crc::new();
        let bytes = match self {
            Self::Gzip => {
                crc.update(block);
                deflate_block(before, block)?
            }
            Self::Zstd(compressor) => compressor.compress(block)?,
        };
        Ok(EncodedBlock { bytes, crc })
    }
}

fn deflate_block(before: &[u8], block: &[u8]) -> io::Result<Vec<u8>> {
    let window_at = |at: usize| match at {
        0 => before,
        _ => last(&block[..at], WINDOW),
    };
    let mut verdicts = Vec::with_capacity(block.len().div_ceil(noise::PIECE));
    for (number, piece) in block.chunks(noise::PIECE).enumerate() {
        let window = window_at(number * noise::PIECE);
        verdicts.push(noise::is_noise(window, piece)?);
    }
    let deflate = |level| -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = 0;
        for same in verdicts.chunk_by(|one, next| one == next) {
            let end = block.len().min(at + same.len() * noise::PIECE);
            let run = &block[at..end];
            if same.contains(&true) {
                store(run, &mut out);
            } else {
                compress(&mut deflate_after(window_at(at), level)?, run, &mut out)?;
            }
            at = end;
        }
        Ok(out)
    };
    let out = deflate(FAST)?;
    if REPETITIVE.contains(&(block.len() / out.len().max(1))) {
        return deflate(BEST);
    }
    Ok(out)
}

/// Creates an encoder with the window as dictionary. A reset one is not reproducible: zlib hashes a
/// byte beyond the dictionary, which would be a byte of earlier input, so the output would depend
/// on the assignment of blocks to threads.
fn deflate_after(window: &[u8], level: Level) -> io::Result<Compress> {
    let mut deflate = Compress::new(level, false);
    if !window.is_empty() {
        deflate.set_dictionary(window).map_err(io::Error::other)?;
    }
    Ok(deflate)
}

/// Deflates a part of a block, ended on a byte.
fn compress(deflate: &mut Compress, run: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    // Room for all of it: zlib's output differs if it is interrupted.
    out.reserve(run.len() + run.len() / 8 + 1024);
    loop {
        let consumed = usize::try_from(deflate.total_in()).map_err(io::Error::other)?;
        let rest = run.get(consumed..).unwrap_or_default();
        deflate
            .compress_vec(rest, out, FlushCompress::Sync)
            .map_err(io::Error::other)?;
        // Room left over means that zlib has no more output.
        if out.len() < out.capacity() {
            return Ok(());
        }
        out.reserve(run.len() / 2 + 1024);
    }
}

/// Stores a part of a block uncompressed.
fn store(run: &[u8], out: &mut Vec<u8>) {
    let parts = run.len().div_ceil(usize::from(u16::MAX));
    out.reserve_exact(run.len() + 5 * parts);
    for part in run.chunks(usize::from(u16::MAX)) {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        out.push(0);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(part);
    }
}

fn last(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(most)..]
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;
    use crate::test_numbers::numbers;

    fn blob(compression: Compression, blocks: &[Vec<u8>]) -> Vec<u8> {
        let mut encoder = Encoder::new(compression).unwrap();
        let mut out = compression.header().to_vec();
        let mut crc = Crc::new();
        let mut before: &[u8] = &[];
        for block in blocks {
            let part = encoder.encode(before, block).unwrap();
            before = compression.window(block);
            out.extend(part.bytes);
            crc.combine(&part.crc);
        }
        out.extend(compression.trailer(&crc));
        out
    }

    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let noise = numbers(seed).map(|number| number.to_be_bytes()[0]);
        noise.take(bytes).collect()
    }

    /// Random and compressible data, in runs of about a piece.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = (any::<bool>(), 1_u64..9, 1_usize..150_000).prop_map(|(is_noise, seed, n)| {
            let mut bytes = noise(seed, n);
            if !is_noise {
                for byte in &mut bytes {
                    *byte &= 15;
                }
            }
            bytes
        });
        proptest::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn blocks_join_to_what_went_in(
            blocks in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 1..5000),
                    (any::<u8>(), 1_usize..50_000).prop_map(|(byte, n)| vec![byte; n]),
                    pieces(),
                ],
                1..6,
            )
        ) {
            let gzip = blob(Compression::Gzip, &blocks);
            let mut out = Vec::new();
            let mut single_member = flate2::read::GzDecoder::new(gzip.as_slice());
            single_member.read_to_end(&mut out).unwrap();
            prop_assert_eq!(&out, &blocks.concat());
            prop_assert!(single_member.into_inner().is_empty());
            let zstd = blob(Compression::Zstd, &blocks);
            prop_assert_eq!(zstd::decode_all(zstd.as_slice()).unwrap(), blocks.concat());
        }
    }

    #[test]
    fn noise_is_stored_and_grows_by_next_to_nothing() {
        let noise = noise(1, 1 << 20);
        let blob = blob(Compression::Gzip, std::slice::from_ref(&noise));
        assert!(blob.len() < noise.len() + noise.len() / 1000);
        assert!(blob.windows(1000).any(|window| window == &noise[..1000]));
    }

    #[test]
    fn noise_that_repeats_is_compressed() {
        let noise = noise(1, 5000).repeat(200);
        let blob = blob(Compression::Gzip, &[noise.clone(), noise]);
        assert!(blob.len() < 100_000, "{}", blob.len());
    }

    #[test]
    fn what_repeats_itself_much_becomes_as_small_as_it_can() {
        let items = (0..20).map(|n| format!("<li><a href=\"{n}.html\">{n}</a>"));
        let menu = items.collect::<Vec<_>>().concat();
        let pages = numbers(3).take(1000).map(|number| {
            let (title, link) = (number >> 52, number >> 56);
            format!("<html><title>{title}</title><body class=\"{link}\"><ul>{menu}</ul></html>\n")
        });
        let pages = pages.collect::<String>().into_bytes();
        let blob = blob(Compression::Gzip, std::slice::from_ref(&pages));
        let mut quick = Vec::new();
        compress(&mut deflate_after(&[], FAST).unwrap(), &pages, &mut quick).unwrap();
        assert!(
            REPETITIVE.contains(&(pages.len() / quick.len())),
            "{}",
            quick.len()
        );
        assert!(blob.len() < quick.len() * 9 / 10, "{}", blob.len());
    }

    #[test]
    fn a_block_goes_on_where_the_one_before_ended() {
        let digits: Vec<u8> = noise(1, 30_000).iter().map(|byte| byte & 15).collect();
        let first = blob(Compression::Gzip, std::slice::from_ref(&digits));
        let both = blob(Compression::Gzip, &[digits.clone(), digits]);
        assert!(both.len() < first.len() + 500, "{}", both.len());
    }
}
