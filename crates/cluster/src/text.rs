//! Messages of parsers, for errors that state their own position.

/// The message of a parser without the position at its end.
pub(super) fn without_place(said: &str) -> &str {
    said.rsplit_once(" at line ")
        .map_or(said, |(problem, _)| problem)
}
