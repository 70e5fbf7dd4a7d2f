//! Words of parsers, for errors that say their place themselves.

/// What a parser says, without the place at its end that it says anyway.
pub(super) fn without_place(said: &str) -> &str {
    said.rsplit_once(" at line ")
        .map_or(said, |(problem, _)| problem)
}
