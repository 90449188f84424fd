internal import MillraceCore
internal import MillraceDSP

/// What the loudspeaker played, placed by time: the canceller asks for the stretch that was heard while the microphone recorded.
///
/// Samples are numbered from the first packet. A packet that follows the one before in position and, within 10 ms, in time is put
/// right after it: times that jitter do not cut the sound. Otherwise its time says where it goes, and what is missing is silence.
///
/// Nothing that is still asked for is written over: what would not fit waits in `take`'s own room until the microphone has come
/// nearer, and until then no packet is to be taken. All memory is taken in `init`.
@safe
struct ReferenceTrack: ~Copyable {
  /// Time differences within which positions are believed rather than times.
  private static let jitter: Nanoseconds = 10_000_000

  private let rate: Int
  private let ring: UnsafeMutableBufferPointer<Float>
  private let mask: Int
  /// The newest packet, of which the frames from `waiting` on are not in the ring yet, nor the silence before them.
  private let floats: UnsafeMutableBufferPointer<Float>
  private var waiting = 0..<0
  private var silence: Int64 = 0
  /// Number after the newest sample in the ring, which holds those before it.
  private(set) var end: Int64 = 0
  /// Time of sample 0, as the newest packet has it; nil before the first.
  private var origin: Nanoseconds?
  /// The packet's position that would go on where the newest one ended.
  private var nextPosition: Int64 = 0
  /// How far ahead of its time the first packet came.
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

  /// Number of the sample heard at a time, between the known ones or beyond them; nil before the first packet.
  func number(at time: Nanoseconds) -> Int64? {
    guard let origin else { return nil }
    let away = Double(time &- origin) * Double(rate) / 1e9
    return abs(away) < 1e15 ? Int64(away.rounded()) : nil
  }

  /// Number of the sample with a position, as the newest packet has it.
  func number(ofPosition position: Int64) -> Int64 { position &- nextPosition &+ announcedEnd }

  /// Number after the newest sample taken, whether there was room for it or not.
  private var announcedEnd: Int64 { end &+ silence &+ Int64(waiting.count) }

  /// True when samples were there once and have been written over since.
  func hasLost(_ number: Int64) -> Bool { number >= 0 && number < end &- Int64(mask) }

  /// True when the next packet may be taken.
  var hasRoom: Bool { silence == 0 && waiting.isEmpty }

  /// Takes a packet; `hasRoom` has to be true, and `fill` puts it into its place.
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
      // Back in time, or further on than is kept: the sound goes on here, and only the reckoning of time moves.
      origin = packet.timestamp &- .samples(end, rate: rate)
    }
  }

  /// Puts what was taken into its place, as far as that does not write over sample `needed` or a later one; nil: nothing is needed.
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

  /// Writes `target.count` samples from number `first` on; silence where there are none.
  func read(from first: Int64, into target: UnsafeMutableBufferPointer<Float>) {
    for index in 0..<target.count {
      let number = first &+ Int64(index)
      let isKept = number >= 0 && number < end && !hasLost(number)
      unsafe target[index] = isKept ? ring[Int(number) & mask] : 0
    }
  }
}
