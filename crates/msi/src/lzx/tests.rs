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

/// Writes lengths from 7 to 9 as changes from zero, with a code of 1, 2 and 2 bits.
fn put_lengths(writer: &mut Writer, lengths: &[u8]) {
    let own: Vec<u8> = (0..20)
        .map(|at| match at {
            8 => 1,
            9 | 10 => 2,
            _ => 0,
        })
        .collect();
    for length in &own {
        writer.put(usize::from(*length), 4);
    }
    for length in lengths {
        let (value, count) = code(&own, 17 - usize::from(*length));
        writer.put(value, count);
    }
}

/// Encodes a frame as one verbatim block of a window of 32 KiB.
fn encode(tokens: &[Token], size: usize) -> Vec<u8> {
    let (main, lengths) = (complete(LITERALS + 240), complete(LENGTHS));
    let mut writer = Writer::default();
    writer.put(0, 1);
    writer.put(1, 3);
    writer.put(size, 24);
    put_lengths(&mut writer, &main[..LITERALS]);
    put_lengths(&mut writer, &main[LITERALS..]);
    put_lengths(&mut writer, &lengths);
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
        let (value, count) = code(&main, symbol);
        writer.put(value, count);
        if let Some((value, extra, length)) = rest {
            if length >= 9 {
                let (value, count) = code(&lengths, length - 9);
                writer.put(value, count);
            }
            writer.put(value, extra);
        }
    }
    writer.finish()
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
    fn frames_are_unpacked(tokens in tokens()) {
        let expected = expand(&tokens);
        prop_assume!(expected.len() <= FRAME);
        let packed = encode(&tokens, expected.len());
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
        let mut packed = encode(&tokens, size.max(1));
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
fn calls_are_made_relative() {
    let mut code = vec![0; 20];
    code[4] = 0xe8;
    code[5..9].copy_from_slice(&100_i32.to_le_bytes());
    translate(&mut code, 0, 1000);
    assert_eq!(code[5..9], 96_i32.to_le_bytes());
}
