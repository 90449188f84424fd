internal import MillraceService

/// Opus packets in Ogg pages, one stream per connection or per press of the button.
struct OggVoice: VoicePacking {
  private let rate: Int
  private let milliseconds: Int
  private var pages: OggPages

  /// - Parameters:
  ///   - rate: sample rate of the source in Hz.
  ///   - milliseconds: approximate duration of a page.
  init(rate: Int, milliseconds: Int) {
    self.rate = rate
    self.milliseconds = milliseconds
    pages = OggPages(rate: rate, milliseconds: milliseconds)
  }

  mutating func begin() { pages = OggPages(rate: rate, milliseconds: milliseconds) }
  mutating func add(_ frame: [UInt8]) -> [UInt8] { pages.add(frame) }
  mutating func end() -> [UInt8] { pages.end() }
}
