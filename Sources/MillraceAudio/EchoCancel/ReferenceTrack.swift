internal import MillraceCore
internal import MillraceDSP

/// What the loudspeaker played, placed by time: the canceller asks for the stretch that was heard while the microphone recorded.
///
/// Samples are numbered from the first packet. A packet that follows the one before in position and, within 10 ms, in time is put
/// right after it: times that jitter do not cut the sound. Otherwise its time says where it goes, and what is missing is silence.
/// All memory is taken in `init`.
@safe
struct ReferenceTrack: ~Copyable {
  /// Time differences within which positions are believed rather than times.
  private static let jitter: Nanoseconds = 10_000_000

  private let rate: Int
  private let ring: UnsafeMutableBufferPointer<Float>
  private let mask: Int
  private let floats: UnsafeMutableBufferPointer<Float>
  /// Number after the newest sample; the ring holds those before it.
  private(set) var end: Int64 = 0
  /// Time of sample 0, as the newest packet has it; nil before the first.
  private var origin: Nanoseconds?
  private var nextPosition: Int64 = 0

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

  /// True once a packet has come.
  var hasBegun: Bool { origin != nil }

  /// Number of the sample heard at a time, between the known ones or beyond them.
  func number(at time: Nanoseconds) -> Int64? {
    guard let origin else { return nil }
    let away = Double(time &- origin) * Double(rate) / 1e9
    return abs(away) < 1e15 ? Int64(away.rounded()) : nil
  }

  /// Appends a packet.
  mutating func take(_ packet: borrowing Packet, sample: SampleType) {
    let frames = unsafe min(Int(packet.byteCount) / sample.byteCount, floats.count)
    place(packet)
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
    for index in 0..<frames { unsafe ring[Int(end &+ Int64(index)) & mask] = target[index] }
    end &+= Int64(frames)
    nextPosition = packet.position &+ Int64(frames)
  }

  /// Decides where a packet goes: right after the newest sample, or where its time says.
  private mutating func place(_ packet: borrowing Packet) {
    guard let known = origin else {
      origin = packet.timestamp
      nextPosition = packet.position
      return
    }
    let expected = known &+ .samples(end, rate: rate)
    let off = packet.timestamp &- expected
    let follows = packet.position == nextPosition && !packet.flags.contains(.discontinuity)
    guard !follows || abs(off) > Self.jitter else { return }
    let gap = Int64((Double(off) * Double(rate) / 1e9).rounded())
    if gap > 0 && gap <= Int64(mask) {
      for index in 0..<gap { unsafe ring[Int(end &+ index) & mask] = 0 }
      end &+= gap
    } else {
      // Back in time, or further on than is kept: the sound goes on here, and only the reckoning of time moves.
      origin = packet.timestamp &- .samples(end, rate: rate)
    }
  }

  /// Writes `target.count` samples from number `first` on; silence where there are none.
  func read(from first: Int64, into target: UnsafeMutableBufferPointer<Float>) {
    for index in 0..<target.count {
      let number = first &+ Int64(index)
      let isKept = number >= 0 && number < end && number >= end &- Int64(mask)
      unsafe target[index] = isKept ? ring[Int(number) & mask] : 0
    }
  }
}
