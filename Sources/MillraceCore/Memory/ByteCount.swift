/// Sums that stop at the largest number: bytes and times that a graph or a file asks for may be more than any machine has, and are
/// still compared with what there is.
extension FixedWidthInteger where Self: SignedInteger {
  /// The sum of two counts, neither below 0; the largest number where it would lie beyond.
  package func addingClamped(_ other: Self) -> Self {
    let (sum, isBeyond) = addingReportingOverflow(other)
    return isBeyond ? .max : sum
  }

  /// The product of two counts, neither below 0; the largest number where it would lie beyond.
  package func multipliedClamped(by other: Self) -> Self {
    let (product, isBeyond) = multipliedReportingOverflow(by: other)
    return isBeyond ? .max : product
  }
}

extension Sequence<Int> {
  /// The sum of counts of bytes, none below 0; the largest number where it would lie beyond.
  package var clampedSum: Int { reduce(0) { $0.addingClamped($1) } }
}
