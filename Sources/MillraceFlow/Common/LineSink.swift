internal import MillraceCore
internal import MillraceFiles

/// Collects lines and writes them to a file, a pipe or a terminal; behind `text.print` and `event.log`.
///
/// One line per packet: line breaks inside become spaces, trailing ones are removed. No heap after `init`. Writing a file may block
/// for the disk (bulk lane). A reader that stops reading blocks no one: the sink takes no more packets, so the link fills and its
/// drop policy applies, and the sink retries every 10 ms. At the end of the input the reader has `patience` to take the rest; what is
/// still unwritten is reported by a fault. A stop drops what is buffered here, at most 4 KiB and one line, as it drops what links
/// hold. An interruption does not remove lines already queued. The graph's secrets are removed from every line, whichever node wrote
/// it.
///
/// On a virtual clock no timer expires while the reader is waited for, so the sink then blocks for up to `patience`.
@safe
struct LineSink: ~Copyable {
  /// Time between two attempts while the reader is not reading.
  private static let retry: Nanoseconds = 10_000_000

  /// Parameter `patience` of both nodes.
  static let patience = ParameterContract(
    "patience", .number(0...86_400_000), unit: "ms", default: 1_000,
    text: "at the end, how long to wait for a reader that takes nothing")

  /// Bytes by which redaction marks may lengthen a line when the graph starts without secrets.
  private static let roomForMarks = 4_096

  private var target: LineTarget
  private let patience: Nanoseconds
  private let isVirtual: Bool
  private let inputs: Int
  private let secrets: Secrets
  private let form: Secrets.Form
  private let buffer: UnsafeMutablePointer<UInt8>
  private let size: Int
  /// A terminal with a person at it, which obeys control characters.
  private let isTerminal: Bool
  private var count = 0
  /// Since when the reader has taken nothing after the end of the input; nil before the end, or while it still reads.
  private var waitsSince: Nanoseconds?

  /// A sink for all inputs of the node with this setup.
  init(_ target: consuming LineTarget, _ setup: borrowing NodeSetup) {
    patience = Nanoseconds(setup.parameters.number("patience") * 1e6)
    isVirtual = setup.isVirtual
    inputs = setup.inputs.count
    // The longest line always fits, after the break that completes an unfinished one.
    let longestPacket = setup.inputs.reduce(0) { max($0, $1.shape?.packetBytes ?? 0) }
    secrets = setup.secrets
    form = setup.inputs.contains { $0.shape?.format == .event } ? .json : .text
    // Secrets may be added while the graph runs, usually one in a line.
    let longestLine = secrets.isEmpty ? longestPacket + Self.roomForMarks : longestPacket * Secrets.growth
    size = target.unit + longestLine + 2
    unsafe buffer = .allocate(capacity: size)
    isTerminal = target.isTerminal
    self.target = target
  }

  deinit {
    // A stop is not announced by a last call.
    if count > 0 { _ = unsafe target.write(buffer, count) }
    unsafe buffer.deallocate()
  }

  // MARK: Calls

  /// Writes queued packets as long as the target accepts them.
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try begin()
    try carry(&ports)
    if count > 0 { try waitForReader(&ports) }
    return .done
  }

  /// Writes the rest at the end of the input.
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try begin()
    try carry(&ports)
    guard count > 0 else { return .ended }
    try waitForReader(&ports)
    return .again
  }

  private mutating func begin() throws(NodeFault) {
    let refusal = target.begin()
    guard refusal == 0 else { throw NodeFault(.system, code: refusal) }
  }

  /// Collects and writes until nothing is queued or the target accepts no more.
  private mutating func carry(_ ports: inout Ports) throws(NodeFault) {
    while true {
      gather(&ports)
      guard count > 0 else { return }
      let before = count
      let (written, refusal) = unsafe target.write(buffer, count)
      count -= written
      if count > 0 && written > 0 { unsafe buffer.update(from: buffer + written, count: count) }
      guard refusal == 0 else {
        count = 0
        throw NodeFault(.system, code: refusal)
      }
      if count < before {
        waitsSince = nil
      } else if !isVirtual || !target.waitForRoom(Int32(clamping: patience / 1_000_000)) {
        return
      }
    }
  }

  /// Asks to be called again, or gives up on the reader.
  private mutating func waitForReader(_ ports: inout Ports) throws(NodeFault) {
    if isVirtual { throw loss }
    var isEnd = true
    for input in 0..<inputs where !ports.isEnding(input) { isEnd = false }
    if isEnd {
      let since = waitsSince ?? ports.now
      waitsSince = since
      if ports.now - since >= patience { throw loss }
    }
    ports.wake(at: ports.now + Self.retry)
  }

  // MARK: Lines

  /// Completes the unfinished line a file ends with.
  mutating func addBreak() { add(10) }

  /// Collects lines for one write, one packet from each input in turn, so that events of several nodes stay roughly in order.
  private mutating func gather(_ ports: inout Ports) {
    var hasMore = true
    while hasMore && count < target.unit {
      hasMore = false
      for input in 0..<inputs where count < target.unit {
        guard let packet = ports.next(input) else { continue }
        add(line: packet)
        hasMore = true
      }
    }
  }

  /// Adds one packet's text as a line, with the graph's secrets removed.
  private mutating func add(line packet: borrowing Packet) {
    let text = packet.samples(of: UInt8.self)
    var length = text.count
    while length > 0 && (text[length - 1] == 10 || text[length - 1] == 13) { length -= 1 }
    if secrets.isEmpty {
      for index in 0..<length { add(inLine: text[index]) }
    } else {
      let secrets = secrets
      let start = count
      var isWhole = true
      secrets.redact(text.extracting(0..<length), form) { byte in
        if count < size - 2 { add(inLine: byte) } else { isWhole = false }
      }
      // More redaction marks than the buffer has room for: the rest of the line would not be valid JSON.
      if !isWhole {
        count = start
        for byte in Secrets.mark.utf8 { add(byte) }
      }
    }
    add(10)
  }

  /// A line break would turn one line into two. A terminal gets no control characters, nor the second byte of a C1 control character
  /// (U+0080 to U+009F).
  private mutating func add(inLine byte: UInt8) {
    guard isTerminal else { return add(byte == 10 || byte == 13 ? 32 : byte) }
    let follows = unsafe count > 0 && buffer[count - 1] == 0xC2
    let isControl = byte < 0x20 || byte == 0x7F || (follows && (0x80..<0xA0).contains(byte))
    // U+00A0, a plain no-break space, has the same first byte.
    add(isControl ? (follows && byte >= 0x80 ? 0xA0 : 32) : byte)
  }

  private mutating func add(_ byte: UInt8) {
    unsafe buffer[count] = byte
    count += 1
  }

  // MARK: Messages

  /// What was collected and not written, in lines and bytes. Links count what is queued in them.
  private var loss: NodeFault {
    var lines: Int32 = 0
    for index in 0..<count where unsafe buffer[index] == 10 { lines &+= 1 }
    return NodeFault(.stalled, code: lines, detail: Int64(count))
  }

  /// The message for a fault of this sink. Control side.
  func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .system: FileMessages.writeFailure(fault.code, target.name, kept: "the lines before it are intact")
    case .stalled:
      "the reader of \(target.name) took nothing for \(patience / 1_000_000) ms: \(fault.code) lines (\(fault.detail) bytes) "
        + "and the packets still queued in the links were not written; keep it reading, or raise \"patience\""
    default: nil
    }
  }
}
