//! Reproducible noise for tests. The digest of a layer that a test expects depends on it.

/// Pseudorandom numbers, the same in every run.
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |number| {
        let next = number.wrapping_mul(6_364_136_223_846_793_005);
        Some(next.wrapping_add(1))
    })
    .skip(1)
}
