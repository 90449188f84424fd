extension Duration {
  /// The duration in whole nanoseconds, the unit of times in a graph. Rounded towards 0; clamped beyond 292 years.
  public var nanoseconds: Nanoseconds {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, sumOverflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    guard overflow || sumOverflow else { return sum }
    return seconds < 0 ? Nanoseconds.min : Nanoseconds.max
  }
}
