/// Sums of bytes that stop at the largest number: what a graph asks for may be more than any machine has, and is still compared
/// with what there is.
extension Int {
  /// The sum of two counts of bytes, neither below 0; the largest number where it would lie beyond.
  package func addingClamped(_ other: Int) -> Int {
    let (sum, isBeyond) = addingReportingOverflow(other)
    return isBeyond ? .max : sum
  }

  /// The product of two counts, neither below 0; the largest number where it would lie beyond.
  package func multipliedClamped(by other: Int) -> Int {
    let (product, isBeyond) = multipliedReportingOverflow(by: other)
    return isBeyond ? .max : product
  }
}

extension Sequence<Int> {
  /// The sum of counts of bytes, none below 0; the largest number where it would lie beyond.
  package var clampedSum: Int { reduce(0) { $0.addingClamped($1) } }
}
