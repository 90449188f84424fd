import MillraceRTCWire

/// Bytes of the largest frame that the depacketizers may deliver.
private let capacity = 1_000

/// A packet cut out of the input: a byte that says what it is, a length, and the payload.
private struct StreamPacket {
  var payload: [UInt8]
  var sequence: Int64
  var timestamp: Int64
  var marker: Bool
  /// It came beside the stream, such as a parameter set of the SDP.
  var isAside: Bool
  /// Much time has passed before it.
  var isLater: Bool

  /// The next packet may be missing, the same one, one that was overtaken, or the first of another start.
  private static let steps: [Int64] = [1, 1, 2, 0, -1, 700, 1, -700]
  /// The duration of a whole telephone event segment among them.
  private static let times: [Int64] = [0, 3_000, 65_535, -160]

  static func list(_ bytes: [UInt8]) -> [StreamPacket] {
    var input = InputBytes(bytes)
    var (sequence, timestamp): (Int64, Int64) = (0, 0)
    var list: [StreamPacket] = []
    while !input.isEmpty {
      let head = input.byte()
      sequence += steps[Int(head & 7)]
      timestamp += times[Int(head >> 3 & 3)]
      let count = Int(input.byte())
      list.append(
        StreamPacket(
          payload: input.take(count), sequence: sequence, timestamp: timestamp, marker: head & 0x20 != 0,
          isAside: head & 0x40 != 0, isLater: head & 0x80 != 0))
    }
    return list
  }
}

/// What a depacketizer has delivered.
private struct Delivered {
  private var frames = 0
  private var damaged = 0
  private var refused = 0
  private let hasStartCode: Bool

  init(hasStartCode: Bool) { self.hasStartCode = hasStartCode }

  mutating func take(_ frame: ReceivedFrame) {
    frames += 1
    if frame.isDamaged { damaged += 1 }
    if !(1...capacity).contains(frame.bytes.count) { fatalError("a frame of \(frame.bytes.count) bytes") }
    guard hasStartCode else { return }
    let start = (0..<min(4, frame.bytes.count)).map { frame.bytes[$0] }
    if frame.bytes.count < 5 || start != [0, 0, 0, 1] {
      fatalError("an access unit of \(frame.bytes.count) bytes without a start code")
    }
  }

  mutating func refuse(_ problem: PayloadProblem) {
    refused += 1
    checkText(problem.description)
  }

  func check(_ statistics: DepacketizerStatistics) {
    if statistics.delivered != frames || statistics.damaged != damaged
      || statistics.refusedPackets != refused
    {
      fatalError("\(frames) frames, \(damaged) of them damaged, \(refused) refused; counted: \(statistics)")
    }
  }
}

/// Feeds packets to the depacketizer of H.264.
func checkH264Stream(_ bytes: [UInt8]) {
  var depacketizer = H264Depacketizer(maximumBytes: capacity)
  var delivered = Delivered(hasStartCode: true)
  for packet in StreamPacket.list(bytes) {
    if packet.isAside {
      do throws(PayloadProblem) { try depacketizer.addParameterSet(packet.payload.span) } catch {
        checkText(error.description)
      }
      continue
    }
    if packet.isLater && packet.marker { depacketizer.reset() }
    do throws(PayloadProblem) {
      try depacketizer.add(
        packet.payload.span, sequence: packet.sequence, timestamp: packet.timestamp, marker: packet.marker
      ) { delivered.take($0) }
    } catch { delivered.refuse(error) }
  }
  depacketizer.flush { delivered.take($0) }
  delivered.check(depacketizer.statistics)
}

/// Feeds packets to the depacketizer of VP8.
func checkVP8Stream(_ bytes: [UInt8]) {
  var depacketizer = VP8Depacketizer(maximumBytes: capacity)
  var delivered = Delivered(hasStartCode: false)
  for packet in StreamPacket.list(bytes) {
    if packet.isLater && packet.marker { depacketizer.reset() }
    do throws(PayloadProblem) {
      try depacketizer.add(
        packet.payload.span, sequence: packet.sequence, timestamp: packet.timestamp, marker: packet.marker
      ) { frame, _ in delivered.take(frame) }
    } catch { delivered.refuse(error) }
  }
  depacketizer.flush { frame, _ in delivered.take(frame) }
  delivered.check(depacketizer.statistics)
}

/// Feeds packets to the receiver of telephone events.
func checkTelephoneEvents(_ bytes: [UInt8]) {
  var receiver = TelephoneEventReceiver()
  var now: Int64 = 0
  func check(_ report: TelephoneEventReport) {
    if report.milliseconds < 0 { fatalError("an event of \(report.milliseconds) ms") }
  }
  for packet in StreamPacket.list(bytes) {
    now += packet.isLater ? 11_000_000_000 : 20_000_000
    if packet.isAside, let deadline = receiver.deadline {
      now = max(now, deadline)
      guard let report = receiver.expire(at: now) else { fatalError("an event that does not end in time") }
      check(report)
      if receiver.current != nil { fatalError("an event after its end") }
    }
    do throws(PayloadProblem) {
      try receiver.receive(
        packet.payload.span, timestamp: UInt32(truncatingIfNeeded: packet.timestamp), marker: packet.marker,
        at: now
      ) { check($0) }
    } catch { checkText(error.description) }
  }
}
