package import MillraceCore

/// Queues decoded audio of a stream, and cuts it into packets of one length, each at its position.
///
/// Pieces that are contiguous in the stream get contiguous positions, however late they arrive. Where the stream has a gap, or another
/// connection starts, positions have a gap as well, of the length the clock shows.
package struct StreamSoundQueue {
  package let rate: Int
  package let frameBytes: Int
  /// Samples per channel in a packet.
  package let frames: Int
  /// Position of the next sample.
  package private(set) var position: Int64 = 0
  /// Its expected arrival, on the monotonic clock.
  package private(set) var time: Nanoseconds = 0
  /// Samples that the stream skips before it; 0 where another connection begins or sound was dropped, since nobody knows what was there.
  package private(set) var skipped = 0

  private var waiting: [StreamSound] = []
  private var stock: [UInt8] = []
  private var used = 0
  /// When audio started, on the monotonic clock.
  private var origin: Nanoseconds?
  /// Stream time of the next piece, if there is no gap.
  private var expected: Nanoseconds = 0
  private var connection = -1
  /// Smaller jumps are timestamp rounding.
  private static let jitter: Nanoseconds = 50_000_000

  package init(rate: Int, frameBytes: Int, frames: Int) {
    self.rate = rate
    self.frameBytes = frameBytes
    self.frames = frames
  }

  package mutating func append(_ pieces: [StreamSound]) { waiting += pieces }

  /// Drops what is queued; what follows is placed by the clock, as after a gap.
  package mutating func clear() {
    waiting.removeAll()
    stock.removeAll(keepingCapacity: true)
    used = 0
    skipped = 0
    connection = -1
  }

  private var stocked: Int { (stock.count - used) / frameBytes }

  /// Samples available for one packet; fewer than a packet only before a gap.
  package mutating func prepare() -> Int {
    while stocked < frames, let piece = waiting.first {
      guard piece.connection == connection, abs(piece.streamTime &- expected) <= Self.jitter else {
        // The rest of the previous audio is emitted first, as a shorter packet.
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

  /// Moves to the position of a piece that does not follow the previous one.
  private mutating func begin(_ piece: StreamSound) {
    if piece.connection == connection, !piece.followsLoss, piece.streamTime > expected {
      skipped += Int((Double(piece.streamTime &- expected) * Double(rate) / 1e9).rounded())
    }
    connection = piece.connection
    expected = piece.streamTime
    let start = origin ?? piece.time
    origin = start
    let place = Double(piece.time &- start) * Double(rate) / 1e9
    position = max(position, Int64(place.rounded()))
  }

  /// Mean power of the next samples, over all channels; 1 is full scale. They have to be prepared.
  package func power(of frames: Int, as sample: SampleType) -> Double {
    let width = sample.byteCount
    let count = frames * frameBytes / width
    var sum = 0.0
    for index in 0..<count {
      var bits: UInt32 = 0
      for byte in (0..<width).reversed() { bits = bits << 8 | UInt32(stock[used + index * width + byte]) }
      let value =
        switch sample {
        case .s16: Double(Int16(truncatingIfNeeded: bits)) / 32_768
        case .f32: Double(Float(bitPattern: bits))
        }
      sum += value * value
    }
    return count > 0 ? sum / Double(count) : 0
  }

  /// Writes the next samples; the target must not hold more than are prepared.
  package mutating func write(into target: inout MutableSpan<UInt8>) {
    for index in target.indices { target[index] = stock[used + index] }
    skipped = 0
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
