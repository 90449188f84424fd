internal import MillraceCore

/// Keeps the first picture of every period of a rate, by the pictures' times on a grid from the first one. A new rate begins a new grid.
struct PictureGrid {
  private var rate: Double?
  private var start: Nanoseconds = 0
  /// The period of the last picture kept.
  private var period: Int64 = -1

  /// Up to this part of a period early counts as on time: timestamps are rounded.
  private static let tolerance = 0.01

  /// True for a picture to keep. A rate of nil keeps all of them.
  mutating func takes(_ time: Nanoseconds, rate: Double?) -> Bool {
    guard let rate else {
      self.rate = nil
      return true
    }
    // Times that go back begin again, too: otherwise none is kept until they have caught up.
    if self.rate != rate || time < start {
      (self.rate, start, period) = (rate, time, -1)
    }
    let present = Int64((Double(time &- start) * rate / 1e9 + Self.tolerance).rounded(.down))
    guard present != period else { return false }
    period = present
    return true
  }
}
