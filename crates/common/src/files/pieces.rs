//! Content that arrives in pieces.

use std::io::{self, Cursor, Read};

/// A reader of the pieces that a function returns, such as those of a channel, until it returns
/// none.
pub struct PieceReader<P, N> {
    next: N,
    piece: Cursor<P>,
}

impl<P: Default, N: FnMut() -> io::Result<Option<P>>> PieceReader<P, N> {
    /// Creates a reader.
    pub fn new(next: N) -> Self {
        Self {
            next,
            piece: Cursor::default(),
        }
    }
}

impl<P: AsRef<[u8]>, N: FnMut() -> io::Result<Option<P>>> Read for PieceReader<P, N> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match (self.next)()? {
                Some(piece) => self.piece = Cursor::new(piece),
                None => return Ok(0),
            }
        }
    }
}
