extension Duration {
  /// Whole nanoseconds, as times inside a graph are counted; rounded towards 0, and the nearest there is beyond 292 years.
  public var nanoseconds: Nanoseconds {
    let (seconds, attoseconds) = components
    let (whole, isBeyond) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isSumBeyond) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    guard isBeyond || isSumBeyond else { return sum }
    return seconds < 0 ? Nanoseconds.min : Nanoseconds.max
  }
}
