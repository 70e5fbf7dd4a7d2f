//! UTF-16, the encoding of text on Windows.

/// UTF-16 that is truncated inside a character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the text is UTF-16 that is truncated inside a character")]
pub struct TruncatedUtf16 {
    /// The text before that character.
    pub before: String,
}

/// Decodes UTF-16 of either byte order, without a BOM: `u16::from_le_bytes` is the order of
/// Windows' own programs.
pub fn from_utf16(bytes: &[u8], from_bytes: fn([u8; 2]) -> u16) -> Result<String, TruncatedUtf16> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(pairs.len());
    for unit in char::decode_utf16(pairs.iter().copied().map(from_bytes)) {
        match unit {
            Ok(c) => text.push(c),
            Err(_) => return Err(TruncatedUtf16 { before: text }),
        }
    }
    if rest.is_empty() {
        Ok(text)
    } else {
        Err(TruncatedUtf16 { before: text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_are_read() {
        let text = "é 𝄞";
        let bytes = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(to_bytes).collect()
        };
        let little = from_utf16(&bytes(u16::to_le_bytes), u16::from_le_bytes);
        assert_eq!(little.unwrap(), text);
        let big = from_utf16(&bytes(u16::to_be_bytes), u16::from_be_bytes);
        assert_eq!(big.unwrap(), text);
    }

    #[test]
    fn a_cut_character_is_an_error_that_says_where() {
        let half_a_unit = [b'a', 0, b'b'];
        let half_a_pair = [b'a', 0, 0x34, 0xD8];
        for bytes in [&half_a_unit[..], &half_a_pair] {
            let error = from_utf16(bytes, u16::from_le_bytes).unwrap_err();
            assert_eq!(error.before, "a");
        }
    }
}
