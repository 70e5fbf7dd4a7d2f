//! Variable-length numbers and length-prefixed byte strings, the elements of the file. Reading
//! trusts no input.

use std::ops::Range;

use super::error::FactsError;

pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reader of the remaining bytes.
pub(super) struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8, FactsError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FactsError> {
        let rest = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk());
        let array = rest.copied().ok_or(TRUNCATED)?;
        self.at += N;
        Ok(array)
    }

    pub(super) fn number(&mut self) -> Result<u64, FactsError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(FactsError::Damaged("a number is too large"))
    }

    pub(super) fn size(&mut self) -> Result<usize, FactsError> {
        usize::try_from(self.number()?).map_err(|_| TRUNCATED)
    }

    pub(super) fn number32(&mut self) -> Result<u32, FactsError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| FactsError::Damaged("a number is too large"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'b [u8], FactsError> {
        let size = self.size()?;
        let end = self.at.checked_add(size).ok_or(TRUNCATED)?;
        let bytes = self.bytes.get(self.at..end).ok_or(TRUNCATED)?;
        self.at = end;
        Ok(bytes)
    }

    /// Range of the next bytes.
    pub(super) fn span(&mut self) -> Result<Range<u32>, FactsError> {
        let length = self.bytes()?.len();
        let place = |at: usize| u32::try_from(at).map_err(|_| TRUNCATED);
        Ok(place(self.at - length)?..place(self.at)?)
    }

    pub(super) fn text(&mut self) -> Result<&'b str, FactsError> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| FactsError::Damaged("a name is not valid UTF-8"))
    }
}

const TRUNCATED: FactsError = FactsError::Damaged("a record is truncated");
