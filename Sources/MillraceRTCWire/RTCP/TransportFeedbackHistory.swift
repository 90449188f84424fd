/// Remembers the packets that were sent on a transport, and joins the feedback about them (transport-wide feedback, sender's side).
///
/// The results are what a bandwidth estimator reads. All memory is requested by `init`. One thread at a time.
@safe public struct TransportFeedbackHistory: ~Copyable, @unchecked Sendable {
  private enum State { case empty, sent, lost, received }

  private struct Entry {
    var number: Int64 = 0
    var bytes = 0
    var sent: Int64 = 0
    var state = State.empty
  }

  /// Packets that are remembered: later ones replace the oldest.
  public let capacity: Int
  /// Feedback packets that were lost, by their numbers; one that comes late stays counted.
  public private(set) var lostFeedback = 0
  /// Bytes sent about which no feedback has come, of the packets that are remembered.
  public private(set) var bytesInFlight = 0

  private var unwrapper = SequenceUnwrapper()
  private var lastFeedback: UInt8?
  /// The last reference time, without its wraps.
  private var reference: Int64?
  private let entries: UnsafeMutablePointer<Entry>

  /// Creates a history; a capacity outside of 16 to 32,768 becomes the nearest.
  public init(capacity: Int = 2_048) {
    self.capacity = max(16, min(capacity, 32_768))
    unsafe entries = .allocate(capacity: self.capacity)
    unsafe entries.initialize(repeating: Entry(), count: self.capacity)
  }

  deinit { unsafe entries.deallocate() }

  /// Notes a packet that is sent at `now` with its transport-wide sequence number; `bytes` are those that the network carries.
  public mutating func note(sequence: UInt16, bytes: Int, at now: Int64) {
    let number = unwrapper.unwrap(sequence)
    let index = slot(number)
    bytesInFlight -= unsafe inFlight(entries[index])
    unsafe entries[index] = Entry(number: number, bytes: max(0, bytes), sent: now, state: .sent)
    bytesInFlight += max(0, bytes)
  }

  /// Joins feedback with the packets it is about, and gives each result that is new, in the order of the sequence numbers.
  ///
  /// A packet is lost once at most; one that was lost and is reported as received later gives another result. Packets that
  /// were never sent, or are no longer remembered, give none.
  public mutating func join(_ feedback: RTCPTransportFeedback, _ result: (PacketResult) -> Void) {
    guard let highest = unwrapper.highest else { return }
    countLost(feedback.number)
    // A peer may let its reference time wrap with every feedback: the sum overflows some day.
    let start = unwrap(feedback.reference) &* RTCPTransportFeedback.referenceUnit
    var number = unwrapper.guess(feedback.base)
    var statuses = feedback.statuses
    while number <= highest, let status = statuses.next() {
      if let joined = join(number, status.arrival.map { start &+ $0 }) { result(joined) }
      number += 1
    }
  }

  /// Forgets all packets, for a transport that restarted.
  public mutating func reset() {
    unwrapper.reset()
    (lastFeedback, reference, bytesInFlight) = (nil, nil, 0)
    for index in 0..<capacity { unsafe entries[index] = Entry() }
  }

  private mutating func join(_ number: Int64, _ arrival: Int64?) -> PacketResult? {
    let index = slot(number)
    let entry = unsafe entries[index]
    guard entry.number == number else { return nil }
    switch (entry.state, arrival) {
    case (.empty, _), (.received, _), (.lost, nil): return nil
    case (.sent, _), (.lost, .some): break
    }
    bytesInFlight -= inFlight(entry)
    unsafe entries[index].state = arrival == nil ? .lost : .received
    return PacketResult(number: number, bytes: entry.bytes, sent: entry.sent, arrival: arrival)
  }

  private func inFlight(_ entry: Entry) -> Int { entry.state == .sent ? entry.bytes : 0 }

  /// The reference time nearest to the last one.
  private mutating func unwrap(_ time: UInt32) -> Int64 {
    guard let last = reference else {
      reference = Int64(time)
      return Int64(time)
    }
    // The difference is shifted to the top of 32 bits so that its sign follows the 24-bit wrap.
    let step = Int32(bitPattern: (time &- UInt32(truncatingIfNeeded: last)) << 8) >> 8
    reference = last + Int64(step)
    return last + Int64(step)
  }

  private mutating func countLost(_ number: UInt8) {
    guard let last = lastFeedback else {
      lastFeedback = number
      return
    }
    let step = number &- last
    // A step of more than half of the numbers is one back.
    guard step > 0, step < 128 else { return }
    lostFeedback += Int(step) - 1
    lastFeedback = number
  }

  private func slot(_ number: Int64) -> Int {
    let rest = Int(number % Int64(capacity))
    return rest < 0 ? rest + capacity : rest
  }
}
