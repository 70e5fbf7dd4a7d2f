//! Marvin32, the hash with which Windows recognises torn entries of a hive's log.

/// The seed for logs of hives, in two halves.
const SEED: [u32; 2] = [0x7A4E_55C5, 0x82EF_4D88];

/// The hash of some data, a multiple of four bytes long.
pub(super) fn hash(data: &[u8]) -> u64 {
    let (words, _) = data.as_chunks::<4>();
    let words = words.iter().map(|&word| u32::from_le_bytes(word));
    // The end of the data, and nothing.
    let [low, high] = words.chain([0x80, 0]).fold(SEED, mix);
    u64::from(high) << 32 | u64::from(low)
}

fn mix([low, high]: [u32; 2], word: u32) -> [u32; 2] {
    let low = low.wrapping_add(word);
    let high = high ^ low;
    let low = low.rotate_left(20).wrapping_add(high);
    let high = high.rotate_left(9) ^ low;
    let low = low.rotate_left(27).wrapping_add(high);
    [low, high.rotate_left(19)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_readers_of_logs() {
        let counted: Vec<u8> = (0..64).collect();
        for (data, expected) in [
            (b"".as_slice(), 0xB39E_FCA4_0396_6E08),
            (b"abcd", 0x2009_4FB1_1A6C_D086),
            (&counted, 0x676C_06AD_CF48_022E),
        ] {
            assert_eq!(hash(data), expected);
        }
    }
}
