internal import MillraceCore
internal import MillraceRTCWire

/// One source of pictures of the peer: puts its packets in order, requests the missing ones, and assembles the pictures.
///
/// A packet that is missing is waited for as long as a request of it can be answered, and no longer than a moment where a key frame begins
/// behind it. After a loss that nothing has cured, a key frame is wanted until one comes. One thread; no heap request after `init`.
final class VideoReceiver {
  /// What a source delivers.
  typealias Deliver = (ReceivedPicture, Span<UInt8>) -> Void

  /// How long packets may overtake each other where nothing can be requested, or nothing has to be.
  private static let reordering: Nanoseconds = .milliseconds(20)
  /// The longest wait for a missing packet, whatever the round trip is.
  private static let longestWait: Nanoseconds = .milliseconds(1_000)

  let ssrc: UInt32
  private(set) var statistics: RTPReceiverStatistics
  private(set) var pictures: UInt64 = 0
  private(set) var damaged = 0
  private(set) var recovered = 0
  /// Payloads that their format forbids.
  private(set) var refused = 0
  private(set) var heardAt: Nanoseconds
  private let formats: VideoFormats
  private var clock: MediaClock
  private var sequences = SequenceUnwrapper()
  private var timestamps = TimestampUnwrapper()
  private var nack = NackGenerator()
  private var waiting = ReorderBuffer()
  private var h264 = H264Depacketizer()
  private var vp8 = VP8Depacketizer()
  private var kind: VideoKind?
  private var hasNack = false
  /// The number that the pictures continue with; nil: nothing has come.
  private var next: Int64?
  /// Where a key frame begins among those that wait.
  private var waitingKey: Int64?
  /// A key frame has come.
  private var hasKey = false
  private var wantsKey = false
  private var askedAt: Nanoseconds?

  init(ssrc: UInt32, _ formats: VideoFormats, parameterSets: [[UInt8]], at now: Nanoseconds) {
    self.ssrc = ssrc
    self.formats = formats
    // Its packets are those of a peer that has proved who it is: the first one counts.
    statistics = RTPReceiverStatistics(ssrc: ssrc, clockRate: 90_000, probation: 0)
    clock = MediaClock(clockRate: 90_000)
    heardAt = now
    for set in parameterSets {
      // A set that is none, or beyond what is kept, is left out: the stream may bring its own.
      do throws(PayloadProblem) { try h264.addParameterSet(set.span) } catch { refused += 1 }
    }
  }

  /// From here to the peer and back.
  var roundTrip: Nanoseconds {
    get { nack.roundTrip }
    set { nack.roundTrip = newValue }
  }

  // MARK: Packets

  /// Takes a packet.
  /// - Parameters:
  ///   - format: that of its payload type.
  ///   - isRepeated: it came in the stream of retransmissions.
  func take(
    _ header: RTPHeader, _ packet: Span<UInt8>, _ format: VideoFormat, isRepeated: Bool,
    at now: Nanoseconds, _ deliver: Deliver
  ) {
    guard let number = place(header, isRepeated: isRepeated, at: now) else { return }
    hasNack = format.hasNack
    if case .recovered(let requests) = nack.note(sequence: header.sequence, at: now), requests > 0 {
      recovered += 1
    }
    let expected = next ?? number
    next = expected
    // It was given up, or came before.
    guard number >= expected else { return }
    let payload = packet.extracting(header.payload)
    var head = ReorderBuffer.Head(
      number: number, timestamp: timestamps.unwrap(header.timestamp), payloadType: header.payloadType,
      marker: header.marker, beginsKey: format.kind.beginsKeyFrame(payload), arrival: now, count: 0)
    head.count = payload.count
    if head.beginsKey { nack.noteKeyFrame(sequence: header.sequence) }
    if number == expected {
      feed(payload, head, at: now, deliver)
      return drain(at: now, deliver)
    }
    if number - expected >= ReorderBuffer.slots { skip(to: number, at: now, deliver) }
    if next == number {
      feed(payload, head, at: now, deliver)
      return drain(at: now, deliver)
    }
    guard waiting.put(payload, head) else { return }
    if head.beginsKey { waitingKey = min(waitingKey ?? number, number) }
  }

  /// The number of a packet; nil: it is not one of the source's, or of no use.
  private func place(_ header: RTPHeader, isRepeated: Bool, at now: Nanoseconds) -> Int64? {
    guard !isRepeated else {
      let number = sequences.guess(header.sequence)
      // Nothing was requested beyond what has come.
      guard let highest = sequences.highest, number <= highest else { return nil }
      return number
    }
    heardAt = now
    switch statistics.note(header, at: now) {
    case .restarted:
      restart()
      return sequences.unwrap(header.sequence)
    case .valid: return sequences.unwrap(header.sequence)
    case .probation, .stray: return nil
    }
  }

  private func restart() {
    sequences.reset()
    timestamps.reset()
    clock.reset()
    nack.reset()
    waiting.removeAll()
    h264.reset()
    vp8.reset()
    (next, waitingKey, hasKey, wantsKey) = (nil, nil, false, false)
  }

  /// Hands on what waits, as far as nothing is missing.
  private func drain(at now: Nanoseconds, _ deliver: Deliver) {
    while let number = next, let head = waiting.head(number) { feedWaiting(head, at: now, deliver) }
    if let key = waitingKey, let number = next, number > key { waitingKey = nil }
  }

  private func feedWaiting(_ head: ReorderBuffer.Head, at now: Nanoseconds, _ deliver: Deliver) {
    waiting.remove(head) { feed($0, head, at: now, deliver) }
  }

  /// Continues behind what is missing before a number, with everything that waits in front of it.
  private func skip(to number: Int64, at now: Nanoseconds, _ deliver: Deliver) {
    while let from = next, let head = waiting.first(from: from), head.number < number {
      next = head.number
      feedWaiting(head, at: now, deliver)
    }
    next = number
  }

  private func feed(
    _ payload: Span<UInt8>, _ head: ReorderBuffer.Head, at now: Nanoseconds, _ deliver: Deliver
  ) {
    next = head.number + 1
    guard let format = formats[head.payloadType] else { return }
    if kind != format.kind {
      // Another codec: what the one before it has begun is over.
      h264.reset()
      vp8.reset()
      kind = format.kind
    }
    do throws(PayloadProblem) {
      switch format.kind {
      case .h264:
        try h264.add(
          payload, sequence: head.number, timestamp: head.timestamp, marker: head.marker
        ) { emit($0, format, head, at: now, deliver) }
      case .vp8:
        try vp8.add(
          payload, sequence: head.number, timestamp: head.timestamp, marker: head.marker
        ) { frame, _ in emit(frame, format, head, at: now, deliver) }
      }
    } catch { refused += 1 }
  }

  private func emit(
    _ frame: ReceivedFrame, _ format: VideoFormat, _ head: ReorderBuffer.Head, at now: Nanoseconds,
    _ deliver: Deliver
  ) {
    pictures += 1
    if frame.isDamaged { damaged += 1 }
    if frame.isKeyFrame, !frame.isDamaged {
      (hasKey, wantsKey) = (true, false)
      nack.noteKeyFrame(sequence: UInt16(truncatingIfNeeded: head.number))
    } else if frame.isDamaged || frame.followsLoss || !hasKey {
      wantsKey = true
    }
    let picture = ReceivedPicture(
      ssrc: ssrc, codec: format.codec, timestamp: frame.timestamp,
      capture: clock.capture(of: UInt32(truncatingIfNeeded: frame.timestamp)), arrival: now,
      isKey: frame.isKeyFrame, isDamaged: frame.isDamaged, followsLoss: frame.followsLoss)
    deliver(picture, frame.bytes)
  }

  // MARK: Time

  /// How long a missing packet is waited for since one behind it came.
  private var wait: Nanoseconds {
    guard hasNack, waitingKey == nil else { return Self.reordering }
    return max(NackGenerator.largestAge, min(2 * nack.roundTrip, Self.longestWait))
  }

  /// Continues without what was waited for long enough.
  func run(at now: Nanoseconds, _ deliver: Deliver) {
    while let number = next, let head = waiting.first(from: number) {
      let due = head.arrival &+ wait
      guard due <= now else { break }
      wantsKey = true
      next = head.number
      drain(at: now, deliver)
    }
    if hasNack, nack.takeKeyFrameRequest(at: now) { wantsKey = true }
  }

  /// When there is something to do, after everything that was due; nil: not before the next packet.
  var deadline: Nanoseconds? {
    var earliest = hasNack ? nack.deadline : nil
    if wantsKey, let asked = askedAt {
      let due = asked &+ NackGenerator.keyFrameInterval
      earliest = min(earliest ?? due, due)
    }
    if let number = next, let head = waiting.first(from: number) {
      let due = head.arrival &+ wait
      earliest = min(earliest ?? due, due)
    }
    return earliest
  }

  /// Writes the numbers of packets to request now, and gives how many there are.
  func requests(at now: Nanoseconds, into numbers: inout MutableSpan<UInt16>) -> Int {
    hasNack ? nack.due(at: now, into: &numbers) : 0
  }

  /// Has a key frame requested.
  func wantKeyFrame() { wantsKey = true }

  /// True when a key frame is to be requested now; it counts as requested then. At most every 500 ms.
  func takeKeyFrameRequest(at now: Nanoseconds) -> Bool {
    guard wantsKey else { return false }
    if let asked = askedAt, now &- asked < NackGenerator.keyFrameInterval { return false }
    askedAt = now
    return true
  }

  // MARK: Reports

  func note(_ info: RTCPSenderInfo, at now: Nanoseconds) {
    statistics.noteSenderReport(info.time, at: now)
    clock.note(info.time, timestamp: info.timestamp)
  }

  func reportBlock(at now: Nanoseconds) -> RTCPReportBlock? {
    // RFC 3550 section 6.4: not about who has sent nothing since the last report.
    statistics.packetsSinceReport > 0 ? statistics.reportBlock(at: now) : nil
  }
}
