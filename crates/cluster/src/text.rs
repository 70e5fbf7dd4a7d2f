//! Messages of parsers, for errors that state their own position.

/// The message of a parser without the position at its end.
pub(super) fn without_place(printed: &str) -> &str {
    printed
        .rsplit_once(" at line ")
        .map_or(printed, |(problem, _)| problem)
}
