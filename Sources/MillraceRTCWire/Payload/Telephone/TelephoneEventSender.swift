/// Sends telephone events as RTP payloads (RFC 4733 section 2.5.1). Pure: the caller has the clock, the timestamps and the socket.
///
/// An event becomes a payload at its start and then one every packet interval, all with the timestamp of the start and a growing
/// duration. The first has the marker. The last one, with the end bit, is sent three times, one interval apart. An event longer than
/// 65,535 units is sent in segments, whose timestamps follow each other. When `next` is called late, durations are those of the call;
/// nothing is made up for.
///
/// One event at a time. No allocation.
public struct TelephoneEventSender: Sendable {
  /// A payload that was written.
  public struct Packet: Sendable, Hashable {
    /// Number of bytes written.
    public let byteCount: Int
    /// The timestamp of the RTP packet.
    public let timestamp: UInt32
    /// The marker bit of the RTP packet.
    public let marker: Bool
  }

  /// How often the end of an event is sent (section 2.5.1.4).
  public static let endCopies = 3
  /// The longest event in nanoseconds: a day. Longer ones are cut.
  public static let maximumDuration: Int64 = 86_400 * 1_000_000_000

  private struct Tone: Sendable {
    var event: UInt8
    var start: Int64
    /// In nanoseconds.
    var duration: Int64
    var timestamp: UInt32
    /// Units in the segments that are over.
    var earlier: Int64 = 0
    var due: Int64
    /// The part of the duration that was sent, in nanoseconds.
    var sent: Int64 = 0
    var hasBegun = false
    var endsLeft = TelephoneEventSender.endCopies
  }

  private let clockRate: Int64
  private let interval: Int64
  private let volume: UInt8
  private var tone: Tone?

  /// - Parameters:
  ///   - clockRate: of the payload type in Hz: that of the sound it accompanies.
  ///   - interval: between two packets in nanoseconds.
  ///   - volume: of the tone below 0 dBm0 in dB, 0 to 63.
  public init(clockRate: Int = 8_000, interval: Int64 = 20_000_000, volume: UInt8 = 10) {
    precondition((1...192_000).contains(clockRate), "the clock rate is out of range")
    precondition(interval > 0, "the packet interval must be positive")
    self.clockRate = Int64(clockRate)
    self.interval = interval
    self.volume = volume
  }

  /// True from the start of an event to the last copy of its end.
  public var isSending: Bool { tone != nil }

  /// When `next` has something to send; nil: nothing.
  public var deadline: Int64? { tone?.due }

  /// Starts an event.
  /// - Parameters:
  ///   - event: the code, such as `TelephoneEvent.code(of:)` returns.
  ///   - duration: in nanoseconds, at least one unit of the timestamp is sent.
  ///   - timestamp: the RTP timestamp of `now`.
  ///   - now: when the event begins.
  /// - Returns: false when another event is being sent; then nothing has changed.
  public mutating func start(
    _ event: UInt8, duration: Int64, timestamp: UInt32, at now: Int64
  ) -> Bool {
    guard tone == nil else { return false }
    let duration = min(max(duration, 1), Self.maximumDuration)
    tone = Tone(event: event, start: now, duration: duration, timestamp: timestamp, due: now)
    return true
  }

  /// Ends the event now, such as when a key is released; it does not become longer. Its end is sent as usual.
  public mutating func stop(at now: Int64) {
    guard let running = tone else { return }
    tone?.duration = min(running.duration, max(running.sent, now - running.start, 1))
  }

  /// Discards the event, such as when the call ends.
  public mutating func cancel() { tone = nil }

  /// Writes the next payload if it is due. Call it until it returns nil: where a segment ends, two payloads are due at once.
  /// - Throws: when there is no room for four bytes.
  public mutating func next(
    at now: Int64, into target: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(PayloadProblem) -> Packet? {
    guard var tone, now >= tone.due else { return nil }
    // The payload of an interval reports it as a whole, like the sound of that interval.
    let intervals = (now - tone.start) / interval + 1
    let elapsed = min(tone.duration, intervals * interval)
    let units = max(
      1, elapsed / 1_000_000_000 * clockRate + elapsed % 1_000_000_000 * clockRate / 1_000_000_000)
    let segment = units - tone.earlier
    let isFull = segment > Int64(UInt16.max)
    let isEnd = !isFull && elapsed == tone.duration
    let event = TelephoneEvent(
      event: tone.event, isEnd: isEnd, volume: volume, duration: UInt16(clamping: segment))
    let count = try event.write(into: &target, at: offset)
    let packet = Packet(byteCount: count, timestamp: tone.timestamp, marker: !tone.hasBegun)
    tone.hasBegun = true
    if isFull {
      tone.earlier += Int64(UInt16.max)
      tone.timestamp &+= UInt32(UInt16.max)
    } else {
      tone.sent = elapsed
      tone.due = tone.start + intervals * interval
    }
    if isEnd { tone.endsLeft -= 1 }
    self.tone = tone.endsLeft > 0 ? tone : nil
    return packet
  }
}
