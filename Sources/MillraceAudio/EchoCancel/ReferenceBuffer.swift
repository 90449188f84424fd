internal import MillraceCore
internal import MillraceDSP

/// What the loudspeaker played, ordered by time: the canceller reads the part that was heard while the microphone recorded.
///
/// Samples are indexed from the first packet. A packet that follows the previous one in position and, within 10 ms, in time is placed
/// right after it: jittering times do not cut the audio. Otherwise its time decides, and what is missing is silence.
///
/// Samples that are still needed are never overwritten: what does not fit stays in `take`'s buffer until the microphone has caught
/// up, and no packet may be taken until then. All memory is allocated in `init`.
@safe
struct ReferenceBuffer: ~Copyable {
  /// Time differences within which positions are trusted rather than times.
  private static let jitter: Nanoseconds = 10_000_000

  private let rate: Int
  private let ring: UnsafeMutableBufferPointer<Float>
  private let mask: Int
  /// The newest packet; its frames from `waiting` on are not in the ring yet, nor is the silence before them.
  private let floats: UnsafeMutableBufferPointer<Float>
  private var waiting = 0..<0
  private var silence: Int64 = 0
  /// Index after the newest sample in the ring.
  private(set) var end: Int64 = 0
  /// Time of sample 0 according to the newest packet; nil before the first.
  private var origin: Nanoseconds?
  /// Position of a packet that would continue the newest one.
  private var nextPosition: Int64 = 0
  /// How far ahead of its time the first packet arrived.
  private(set) var announced: Nanoseconds = 0

  /// Keeps `span` samples, and takes packets of up to `longest`.
  init(rate: Int, span: Int, longest: Int) {
    self.rate = rate
    var capacity = 1
    while capacity < span { capacity *= 2 }
    mask = capacity - 1
    unsafe ring = .allocate(capacity: capacity)
    unsafe ring.initialize(repeating: 0)
    unsafe floats = .allocate(capacity: longest)
    unsafe floats.initialize(repeating: 0)
  }

  deinit {
    unsafe ring.deallocate()
    unsafe floats.deallocate()
  }

  /// Index of the sample heard at a time, interpolated or extrapolated; nil before the first packet.
  func number(at time: Nanoseconds) -> Int64? {
    guard let origin else { return nil }
    let away = Double(time &- origin) * Double(rate) / 1e9
    return abs(away) < 1e15 ? Int64(away.rounded()) : nil
  }

  /// Index of the sample with a position, according to the newest packet.
  func number(ofPosition position: Int64) -> Int64 { position &- nextPosition &+ announcedEnd }

  /// Index after the newest sample taken, whether or not there was room for it.
  private var announcedEnd: Int64 { end &+ silence &+ Int64(waiting.count) }

  /// True when a sample has been overwritten.
  func hasLost(_ number: Int64) -> Bool { number >= 0 && number < end &- Int64(mask) }

  /// True when the next packet may be taken.
  var hasRoom: Bool { silence == 0 && waiting.isEmpty }

  /// Takes a packet; requires `hasRoom`. `fill` then stores it.
  mutating func take(_ packet: borrowing Packet, sample: SampleType, now: Nanoseconds) {
    let frames = unsafe min(Int(packet.byteCount) / sample.byteCount, floats.count)
    place(packet, now: now)
    guard frames > 0 else { return }
    let target = unsafe floats.extracting(0..<frames)
    switch sample {
    case .s16:
      var span = unsafe MutableSpan(_unsafeElements: target)
      SampleConversion.convert(packet.samples(of: Int16.self).extracting(0..<frames), into: &span)
    case .f32:
      let source = packet.samples(of: Float.self)
      for index in 0..<frames { unsafe target[index] = source[index] }
    }
    waiting = 0..<frames
    nextPosition = packet.position &+ Int64(frames)
  }

  /// Decides where a packet goes: right after the newest sample, or where its time says.
  private mutating func place(_ packet: borrowing Packet, now: Nanoseconds) {
    guard let known = origin else {
      origin = packet.timestamp
      nextPosition = packet.position
      announced = packet.timestamp &- now
      return
    }
    let expected = known &+ .samples(end, rate: rate)
    let off = packet.timestamp &- expected
    let follows = packet.position == nextPosition && !packet.flags.contains(.discontinuity)
    guard !follows || abs(off) > Self.jitter else { return }
    let gap = Int64((Double(off) * Double(rate) / 1e9).rounded())
    if gap > 0 && gap <= Int64(mask) {
      silence = gap
    } else {
      // Back in time, or further ahead than is kept: the audio continues here, and only the time mapping moves.
      origin = packet.timestamp &- .samples(end, rate: rate)
    }
  }

  /// Stores what was taken, without overwriting sample `needed` or a later one; nil: nothing is needed.
  mutating func fill(keeping needed: Int64?) {
    let kept = needed.map { end &- max($0, 0) } ?? 0
    var room = max(0, Int64(mask) &- max(kept, 0))
    let gap = min(silence, room)
    for _ in 0..<gap { append(0) }
    silence -= gap
    room -= gap
    guard silence == 0 else { return }
    let part = waiting.prefix(Int(min(room, Int64(waiting.count))))
    for index in part { append(unsafe floats[index]) }
    waiting = part.upperBound..<waiting.upperBound
  }

  private mutating func append(_ sample: Float) {
    unsafe ring[Int(end) & mask] = sample
    end &+= 1
  }

  /// Writes `target.count` samples from index `first` on; silence where there are none.
  func read(from first: Int64, into target: UnsafeMutableBufferPointer<Float>) {
    for index in 0..<target.count {
      let number = first &+ Int64(index)
      let isKept = number >= 0 && number < end && !hasLost(number)
      unsafe target[index] = isKept ? ring[Int(number) & mask] : 0
    }
  }
}
