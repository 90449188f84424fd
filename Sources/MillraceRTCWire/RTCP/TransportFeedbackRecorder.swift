/// Records when the packets of a transport arrive, and writes the feedback about them every 100 ms
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// A packet that comes after its neighbours were reported is reported by the next feedback. All memory is requested by `init`.
/// One thread at a time.
@safe public struct TransportFeedbackRecorder: ~Copyable, @unchecked Sendable {
  /// Nanoseconds from the first packet that is not reported to the feedback.
  public static let interval: Int64 = 100_000_000

  /// Packets that are kept: later ones replace the oldest, even before they were reported.
  public let capacity: Int
  /// When feedback is due; nil: there is nothing to report.
  public private(set) var deadline: Int64?

  private let sender: UInt32
  private var unwrapper = SequenceUnwrapper()
  /// The first packet that the next feedback is about.
  private var next: Int64 = 0
  private var number: UInt8 = 0
  /// Arrivals at the packet's number modulo the capacity. The second half repeats the first, so every stretch is contiguous.
  private let arrivals: UnsafeMutablePointer<Int64>

  /// Creates a recorder whose feedback has this source; a capacity outside of 16 to 16,384 becomes the nearest.
  public init(sender: UInt32, capacity: Int = 1_024) {
    self.sender = sender
    self.capacity = max(16, min(capacity, 16_384))
    unsafe arrivals = .allocate(capacity: 2 * self.capacity)
    unsafe arrivals.initialize(
      repeating: RTCPTransportFeedback.notReceived, count: 2 * self.capacity)
  }

  deinit { unsafe arrivals.deallocate() }

  /// Notes the transport-wide sequence number of a packet that arrived at `now`. A duplicate, or one too old, is ignored.
  public mutating func note(sequence: UInt16, at now: Int64) {
    let before = unwrapper.highest
    let packet = unwrapper.unwrap(sequence)
    if let before {
      guard packet > before - Int64(capacity) else { return }
      advance(from: before, to: packet)
    } else {
      next = packet
    }
    guard unsafe arrivals[slot(packet)] == RTCPTransportFeedback.notReceived else { return }
    set(now, at: packet)
    next = max(min(next, packet), end - Int64(capacity))
    deadline = deadline ?? now &+ Self.interval
  }

  /// True when feedback is due.
  public func isDue(at now: Int64) -> Bool { deadline.map { $0 <= now } ?? false }

  /// Writes one feedback packet; `media` is any source of the transport.
  ///
  /// True: it did not cover all packets, so call it again, with another datagram if this one is full. Throws `noRoom` where not
  /// even one packet can be reported. Without anything to report nothing is written.
  public mutating func write(
    media: UInt32, into writer: inout RTCPWriter, at now: Int64
  ) throws(RTCPProblem) -> Bool {
    guard deadline != nil else { return false }
    let stretch = unsafe Span(_unsafeStart: arrivals + slot(next), count: Int(end - next))
    let covered = try writer.transportFeedback(
      sender: sender, media: media, base: UInt16(truncatingIfNeeded: next), number: number,
      arrivals: stretch)
    number &+= 1
    next += Int64(covered)
    deadline = next < end ? now : nil
    return next < end
  }

  /// Forgets all packets, for a transport that restarted.
  public mutating func reset() {
    unwrapper.reset()
    deadline = nil
    for index in 0..<2 * capacity { unsafe arrivals[index] = RTCPTransportFeedback.notReceived }
  }

  /// The number after the highest.
  private var end: Int64 { (unwrapper.highest ?? -1) + 1 }

  /// Clears the slots of the packets that are new.
  private mutating func advance(from before: Int64, to packet: Int64) {
    guard packet > before else { return }
    let first = max(before + 1, packet - Int64(capacity) + 1)
    // A range of Int: iterating one of Int64 makes heap requests in debug builds.
    for step in 0..<Int(packet - first + 1) {
      set(RTCPTransportFeedback.notReceived, at: first + Int64(step))
    }
  }

  private mutating func set(_ arrival: Int64, at packet: Int64) {
    let index = slot(packet)
    unsafe arrivals[index] = arrival
    unsafe arrivals[index + capacity] = arrival
  }

  private func slot(_ packet: Int64) -> Int {
    let rest = Int(packet % Int64(capacity))
    return rest < 0 ? rest + capacity : rest
  }
}
