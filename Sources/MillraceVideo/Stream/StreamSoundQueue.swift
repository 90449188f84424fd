package import MillraceCore

/// Sound of a stream that was decoded and not yet given: cut into packets of one length, each at its place.
///
/// Pieces that follow one another in the stream follow one another in positions, however late they came. Where the stream leaves
/// something out, or another connection's sound begins, the positions do so too, by as much as the clock says.
package struct StreamSoundQueue {
  package let rate: Int
  package let frameBytes: Int
  /// Samples per channel of a packet.
  package let frames: Int
  /// Position of the next sample given.
  package private(set) var position: Int64 = 0
  /// When it should have come, on the monotonic clock.
  package private(set) var time: Nanoseconds = 0

  private var waiting: [StreamSound] = []
  private var stock: [UInt8] = []
  private var used = 0
  /// When sound began, on the monotonic clock.
  private var origin: Nanoseconds?
  /// Where in its own time the stream goes on, if nothing is left out.
  private var expected: Nanoseconds = 0
  private var connection = -1
  /// A smaller jump of the stream's times is their coarseness.
  private static let jitter: Nanoseconds = 50_000_000

  package init(rate: Int, frameBytes: Int, frames: Int) {
    self.rate = rate
    self.frameBytes = frameBytes
    self.frames = frames
  }

  package mutating func append(_ pieces: [StreamSound]) { waiting += pieces }

  private var stocked: Int { (stock.count - used) / frameBytes }

  /// Samples that can be given in one packet now; fewer than a packet has only where the sound is cut off.
  package mutating func prepare() -> Int {
    while stocked < frames, let piece = waiting.first {
      guard piece.connection == connection, abs(piece.streamTime &- expected) <= Self.jitter else {
        // What is left of the sound before goes first, as a shorter packet.
        if stocked > 0 { return stocked }
        begin(piece)
        continue
      }
      time = piece.time &- .samples(Int64(stocked), rate: rate)
      stock += piece.bytes
      expected &+= .samples(Int64(piece.bytes.count / frameBytes), rate: rate)
      waiting.removeFirst()
    }
    return stocked >= frames ? frames : 0
  }

  /// Goes to the place of a piece that does not follow the one before.
  private mutating func begin(_ piece: StreamSound) {
    connection = piece.connection
    expected = piece.streamTime
    let start = origin ?? piece.time
    origin = start
    let place = Double(piece.time &- start) * Double(rate) / 1e9
    position = max(position, Int64(place.rounded()))
  }

  /// Writes the next samples; as many as the target holds must be prepared.
  package mutating func write(into target: inout MutableSpan<UInt8>) {
    for index in target.indices { target[index] = stock[used + index] }
    used += target.count
    let count = Int64(target.count / frameBytes)
    position += count
    time &+= .samples(count, rate: rate)
    if used == stock.count {
      stock.removeAll(keepingCapacity: true)
      used = 0
    } else if used > 1 << 16 {
      stock.removeFirst(used)
      used = 0
    }
  }
}
