/// A telephone event that is over.
public struct TelephoneEventReport: Sendable, Hashable {
  /// The code.
  public let event: UInt8
  /// The RTP timestamp of its beginning.
  public let timestamp: UInt32
  /// How long it lasted, in milliseconds.
  public let milliseconds: Int
  /// The level of the tone below 0 dBm0, in dB.
  public let volume: UInt8
  /// True when no packet with the end bit arrived: the duration is that of the last packet.
  public let isEndLost: Bool
  /// The key: 0–9, *, #, A–D; nil when the event is no key.
  public var key: Character? { TelephoneEvent.key(of: event) }
}

/// Recognizes telephone events in RTP payloads (RFC 4733 section 2.5.2). Pure: the caller has the clock.
///
/// Each event is reported once, when it is over: with the first packet that has the end bit, with the beginning of another event, or,
/// where all ends were lost, when nothing more has come for a while. Copies and late packets are recognized by the timestamp. The
/// segments of a long event are one event. Several events in one payload are taken in order. No allocation.
public struct TelephoneEventReceiver: Sendable {
  /// How long after the last packet an event without an end is taken for over, in nanoseconds: five packets at the usual 50 ms.
  public static let standardTimeout: Int64 = 250_000_000
  /// How long a lower timestamp means a late packet. After that, the timestamps may have wrapped.
  private static let lateness: Int64 = 10_000_000_000

  private struct Tone: Sendable {
    var last: TelephoneEvent
    /// Where the event begins, and where its current segment does.
    var timestamp: UInt32
    var segment: UInt32
    /// Units in the segments that are over.
    var earlier: Int64 = 0
    var heard: Int64
    var isReported = false
  }

  private let clockRate: Int64
  private let timeout: Int64
  /// The latest event, kept after its report to recognize what arrives late.
  private var tone: Tone?

  /// - Parameters:
  ///   - clockRate: of the payload type in Hz.
  ///   - timeout: after the last packet of an event, in nanoseconds.
  public init(clockRate: Int = 8_000, timeout: Int64 = standardTimeout) {
    precondition((1...192_000).contains(clockRate), "the clock rate is out of range")
    precondition(timeout > 0, "the timeout must be positive")
    self.clockRate = Int64(clockRate)
    self.timeout = timeout
  }

  /// The event that lasts: its code; nil: none.
  public var current: UInt8? { tone.flatMap { $0.isReported ? nil : $0.last.event } }

  /// When the current event is over unless a packet arrives; nil: there is none.
  public var deadline: Int64? { tone.flatMap { $0.isReported ? nil : $0.heard + timeout } }

  /// Forgets the stream, such as when its SSRC changes, without a report.
  public mutating func reset() { tone = nil }

  /// Takes a payload.
  /// - Parameters:
  ///   - payload: one or more events of four bytes.
  ///   - timestamp: of the RTP packet.
  ///   - marker: the marker bit: an event begins.
  ///   - now: when the packet arrived.
  ///   - report: called for each event that is over.
  /// - Throws: when the payload is no row of events. It has then no effect.
  public mutating func receive(
    _ payload: Span<UInt8>, timestamp: UInt32, marker: Bool, at now: Int64,
    report: (TelephoneEventReport) -> Void
  ) throws(PayloadProblem) {
    guard payload.count > 0, payload.count % TelephoneEvent.byteCount == 0 else {
      throw .malformed(.telephoneEvent, "its length is no multiple of 4 above 0")
    }
    var timestamp = timestamp
    for position in stride(from: 0, to: payload.count, by: TelephoneEvent.byteCount) {
      let event = try TelephoneEvent(parsing: payload, at: position)
      take(event, timestamp, isNew: marker || position > 0, now, report)
      // The events of a payload lie end to end (section 2.5.1.5).
      timestamp &+= UInt32(event.duration)
    }
  }

  /// Ends the current event when its time is over.
  /// - Returns: its report; nil: nothing is over.
  public mutating func expire(at now: Int64) -> TelephoneEventReport? {
    guard let deadline, now >= deadline else { return nil }
    return end(isEndLost: true)
  }

  // MARK: Events

  private mutating func take(
    _ event: TelephoneEvent, _ timestamp: UInt32, isNew: Bool, _ now: Int64,
    _ report: (TelephoneEventReport) -> Void
  ) {
    switch place(event, timestamp, isNew: isNew, now) {
    case .late: return
    case .same:
      let duration = max(event.duration, tone?.last.duration ?? 0)
      tone?.last.duration = duration
      tone?.last.volume = event.volume
    case .nextSegment:
      tone?.earlier += Int64(UInt16.max)
      tone?.segment = timestamp
      tone?.last = event
    case .new:
      if current != nil, let lost = end(isEndLost: true) { report(lost) }
      tone = Tone(last: event, timestamp: timestamp, segment: timestamp, heard: now)
    }
    tone?.heard = now
    if event.isEnd {
      tone?.last.isEnd = true
      if current != nil, let whole = end(isEndLost: false) { report(whole) }
    }
  }

  private enum Place { case same, nextSegment, new, late }

  /// Where an event belongs.
  private func place(_ event: TelephoneEvent, _ timestamp: UInt32, isNew: Bool, _ now: Int64) -> Place {
    guard let tone else { return .new }
    let isRecent = now - tone.heard < Self.lateness
    let distance = Int32(bitPattern: timestamp &- tone.segment)
    if distance == 0, isRecent { return event.event == tone.last.event ? .same : .late }
    // A segment ends at the largest duration, without an end bit, and the next one begins there without a marker (section 2.5.1.3).
    if distance == Int32(UInt16.max), !isNew, !tone.last.isEnd, event.event == tone.last.event, isRecent {
      return .nextSegment
    }
    return distance < 0 && isRecent ? .late : .new
  }

  private mutating func end(isEndLost: Bool) -> TelephoneEventReport? {
    guard let ended = tone else { return nil }
    tone?.isReported = true
    let units = ended.earlier + Int64(ended.last.duration)
    return TelephoneEventReport(
      event: ended.last.event, timestamp: ended.timestamp,
      milliseconds: Int((units * 1_000 + clockRate / 2) / clockRate), volume: ended.last.volume,
      isEndLost: isEndLost)
  }
}
