//! Streams that a small encoder makes, unpacked by this decoder and, as a check of the encoder, by
//! the `lzxd` crate.

use lzxd::{Lzxd, WindowSize};
use proptest::prelude::*;

use super::*;

/// A literal, or a match: distance and length.
#[derive(Debug, Clone, Copy)]
enum Token {
    Literal(u8),
    Match(usize, usize),
}

/// Bits as words.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    word: u32,
    count: u32,
}

impl Writer {
    fn put(&mut self, value: usize, count: u32) {
        for bit in (0..count).rev() {
            let bit = u32::from(value >> bit & 1 == 1);
            self.word = self.word << 1 | bit;
            self.count += 1;
            if self.count == 16 {
                self.bytes
                    .extend(u16::try_from(self.word).unwrap().to_le_bytes());
                (self.word, self.count) = (0, 0);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        while self.count != 0 {
            self.put(0, 1);
        }
        self.bytes
    }
}

/// Lengths that use all codes: the first ones are a bit shorter.
fn complete(symbols: usize) -> Vec<u8> {
    let bits = symbols.next_power_of_two().trailing_zeros();
    let shorter = (1 << bits) - symbols;
    let length = |at: usize| u8::try_from(bits - u32::from(at < shorter)).unwrap();
    (0..symbols).map(length).collect()
}

/// The same with codes of 1 to 7 bits in front, so that the others have up to 16.
fn skewed(symbols: usize) -> Vec<u8> {
    let rest = complete(symbols - 7);
    (1..=7)
        .chain(rest.iter().map(|length| length + 7))
        .collect()
}

/// The canonical code of a symbol.
fn code(lengths: &[u8], symbol: usize) -> (usize, u32) {
    let mut next = 0;
    for length in 1..=16_u8 {
        for (at, own) in lengths.iter().enumerate() {
            if *own == length {
                if at == symbol {
                    return (next, u32::from(length));
                }
                next += 1;
            }
        }
        next <<= 1;
    }
    panic!("{symbol}");
}

/// Writes lengths as changes from zero.
fn put_lengths(writer: &mut Writer, lengths: &[u8]) {
    let mut own = complete(17);
    own.resize(20, 0);
    for length in &own {
        writer.put(usize::from(*length), 4);
    }
    for length in lengths {
        let (value, count) = code(&own, (17 - usize::from(*length)) % 17);
        writer.put(value, count);
    }
}

/// Encodes a frame as one verbatim block of a window of 32 KiB, with codes from `lengths_of`.
fn encode(tokens: &[Token], size: usize, lengths_of: fn(usize) -> Vec<u8>) -> Vec<u8> {
    let (main, lengths) = (lengths_of(LITERALS + 240), lengths_of(LENGTHS));
    let mut writer = Writer::default();
    writer.put(0, 1);
    writer.put(1, 3);
    writer.put(size, 24);
    put_lengths(&mut writer, &main[..LITERALS]);
    put_lengths(&mut writer, &main[LITERALS..]);
    put_lengths(&mut writer, &lengths);
    put_tokens(&mut writer, tokens, &main, &lengths);
    writer.finish()
}

fn put_tokens(writer: &mut Writer, tokens: &[Token], main: &[u8], lengths: &[u8]) {
    for token in tokens {
        let (symbol, rest) = match *token {
            Token::Literal(byte) => (usize::from(byte), None),
            Token::Match(distance, length) => {
                let slot = (3..30)
                    .rev()
                    .find(|slot| position(*slot).0 <= distance + 2)
                    .unwrap();
                let (base, extra) = position(slot);
                let header = (length - 2).min(7);
                (
                    LITERALS + slot * 8 + header,
                    Some((distance + 2 - base, extra, length)),
                )
            }
        };
        let (value, count) = code(main, symbol);
        writer.put(value, count);
        if let Some((value, extra, length)) = rest {
            if length >= 9 {
                let (value, count) = code(lengths, length - 9);
                writer.put(value, count);
            }
            writer.put(value, extra);
        }
    }
}

fn expand(tokens: &[Token]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    for token in tokens {
        match *token {
            Token::Literal(byte) => out.push(byte),
            Token::Match(distance, length) => {
                for _ in 0..length {
                    out.push(out[out.len() - distance]);
                }
            }
        }
    }
    out
}

/// Tokens whose matches lie within what is there.
fn tokens() -> impl Strategy<Value = Vec<Token>> {
    let token = (
        any::<u8>(),
        any::<prop::sample::Index>(),
        2_usize..258,
        any::<bool>(),
    );
    prop::collection::vec(token, 1..120).prop_map(|all| {
        let mut size = 0;
        let mut tokens = Vec::new();
        for (byte, distance, length, is_match) in all {
            let token = if is_match && size > 0 {
                Token::Match(distance.index(size) + 1, length)
            } else {
                Token::Literal(byte)
            };
            size += match token {
                Token::Literal(_) => 1,
                Token::Match(_, length) => length,
            };
            tokens.push(token);
        }
        tokens
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn frames_are_unpacked(tokens in tokens(), has_long_codes in any::<bool>()) {
        let expected = expand(&tokens);
        prop_assume!(expected.len() <= FRAME);
        let lengths_of = if has_long_codes { skewed } else { complete };
        let packed = encode(&tokens, expected.len(), lengths_of);
        let mut other = Lzxd::new(WindowSize::KB32);
        prop_assert_eq!(other.decompress_next(&packed, expected.len()).unwrap(), &expected);
        let unpacked = Lzx::new(15).unwrap().frame(&packed, expected.len()).unwrap();
        prop_assert_eq!(unpacked, expected);
    }

    #[test]
    fn damaged_frames_are_errors(
        tokens in tokens(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        size in 0_usize..FRAME,
    ) {
        let mut packed = encode(&tokens, size.max(1), skewed);
        let at = at.index(packed.len());
        packed[at] = byte;
        let mut lzx = Lzx::new(15).unwrap();
        for _ in 0..3 {
            if let Ok(frame) = lzx.frame(&packed, size) {
                prop_assert_eq!(frame.len(), size);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Lzx::new(21).unwrap().frame(&bytes, FRAME);
    }
}

#[test]
fn stored_blocks_are_copied() {
    let mut writer = Writer::default();
    writer.put(0, 1);
    writer.put(3, 3);
    writer.put(3, 24);
    let mut packed = writer.finish();
    for _ in 0..3 {
        packed.extend([1, 0, 0, 0]);
    }
    packed.extend(*b"abc\0");
    assert_eq!(Lzx::new(15).unwrap().frame(&packed, 3).unwrap(), b"abc");
    assert_eq!(
        Lzxd::new(WindowSize::KB32)
            .decompress_next(&packed, 3)
            .unwrap(),
        b"abc"
    );
}

#[test]
fn a_stored_block_of_odd_size_ends_with_a_word() {
    let stored = |is_first, content: &[u8]| {
        let mut writer = Writer::default();
        if is_first {
            writer.put(0, 1);
        }
        writer.put(3, 3);
        writer.put(content.len(), 24);
        let mut packed = writer.finish();
        for recent in [1_u32, 2, 3] {
            packed.extend(recent.to_le_bytes());
        }
        packed.extend(content);
        packed
    };
    let packed = [stored(true, b"abc"), vec![0], stored(false, b"defg")].concat();
    assert_eq!(Lzx::new(15).unwrap().frame(&packed, 7).unwrap(), b"abcdefg");
    let mut other = Lzxd::new(WindowSize::KB32);
    assert_eq!(other.decompress_next(&packed, 7).unwrap(), b"abcdefg");
}

#[test]
fn matches_reach_back_over_frames_as_far_as_the_window() {
    let bytes = (0..=u8::MAX).cycle().take(FRAME);
    let literals: Vec<Token> = bytes.map(Token::Literal).collect();
    // The block goes on in the second frame.
    let first = encode(&literals, FRAME + 200, complete);
    let mut lzx = Lzx::new(15).unwrap();
    assert_eq!(lzx.frame(&first, FRAME).unwrap(), expand(&literals));
    let mut writer = Writer::default();
    let (main, lengths) = (complete(LITERALS + 240), complete(LENGTHS));
    put_tokens(
        &mut writer,
        &[Token::Match(FRAME - 3, 200)],
        &main,
        &lengths,
    );
    let frame = lzx.frame(&writer.finish(), 200).unwrap();
    assert_eq!(frame, expand(&literals)[3..203]);
}

#[test]
fn calls_are_made_relative() {
    let mut code = vec![0; 20];
    code[4] = 0xe8;
    code[5..9].copy_from_slice(&100_i32.to_le_bytes());
    translate(&mut code, 0, 1000);
    assert_eq!(code[5..9], 96_i32.to_le_bytes());
}
