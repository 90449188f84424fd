/// Saturating arithmetic. A graph or a file may ask for more bytes or time than any machine has, and the sum is still compared
/// with what is available.
extension FixedWidthInteger where Self: SignedInteger {
  /// The sum of two counts, neither negative; `max` on overflow.
  package func addingClamped(_ other: Self) -> Self {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }

  /// The product of two counts, neither negative; `max` on overflow.
  package func multipliedClamped(by other: Self) -> Self {
    let (product, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? .max : product
  }
}

extension Sequence<Int> {
  /// The sum of byte counts, none negative; `Int.max` on overflow.
  package var clampedSum: Int { reduce(0) { $0.addingClamped($1) } }
}
