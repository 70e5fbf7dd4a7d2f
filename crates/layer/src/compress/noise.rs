//! Whether deflate would gain anything: a zip, a picture or a cabinet in a layer is stored as it is,
//! as fast as it is read.
//!
//! Compressed bytes are as frequent as each other, to within what chance does. A sample of a few of
//! them is counted, for next to no time; where it is even, the beginning is deflated to see what
//! that brings, so that noise which repeats is not missed.

use std::io;

use flate2::FlushCompress;

use super::{QUICK, deflate_after, last};

/// How much of a block is judged at once: large beside the window that the rest is compressed with.
pub(super) const PIECE: usize = 64 << 10;

/// A sample is so many bytes at so many places.
const PLACES: usize = 16;
const AT_EACH: usize = 256;

/// What the squares of the counts add up to at most in an even sample; chance makes 69,632 of it.
/// Measured on packages, pictures and fonts: what lies above this loses some percent when it is
/// stored, what lies below half a percent.
const EVEN: u32 = 76_000;

/// How much of a piece is deflated to see, and how small it must become.
const TRIAL: usize = 4 << 10;
const GAIN: usize = TRIAL / 64;

/// Returns true if a piece should be stored; `window` is what comes before it.
pub(super) fn is_noise(window: &[u8], piece: &[u8]) -> io::Result<bool> {
    let Some(beginning) = piece.first_chunk::<TRIAL>() else {
        return Ok(false);
    };
    if !is_even(piece) {
        return Ok(false);
    }
    let mut deflate = deflate_after(last(window, 2 * TRIAL), QUICK)?;
    let mut out = [0; TRIAL + TRIAL / 8];
    deflate
        .compress(beginning, &mut out, FlushCompress::Sync)
        .map_err(io::Error::other)?;
    Ok(deflate.total_out() > (TRIAL - GAIN) as u64)
}

/// Returns true if the bytes of a sample are about as frequent as each other.
fn is_even(piece: &[u8]) -> bool {
    let mut counts = [0_u32; 256];
    for place in piece.chunks_exact(piece.len() / PLACES).take(PLACES) {
        for byte in &place[..AT_EACH.min(place.len())] {
            counts[usize::from(*byte)] += 1;
        }
    }
    counts.iter().map(|count| count * count).sum::<u32>() < EVEN
}
