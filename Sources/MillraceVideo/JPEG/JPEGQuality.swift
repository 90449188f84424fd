extension JPEGEncoder {
  /// The table scale, in percent, of a libjpeg quality of 1 to 100.
  static func scale(ofQuality quality: Int) -> Double {
    quality < 50 ? 5_000 / Double(max(1, quality)) : Double(200 - 2 * min(100, quality))
  }
}
