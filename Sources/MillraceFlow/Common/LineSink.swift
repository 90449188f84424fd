internal import MillraceCore
internal import MillraceFiles

/// Gathers lines and writes them to a file, a pipe or a terminal, for `text.print` and `event.log`.
///
/// One line a packet: line breaks inside become spaces, those at the end go. No heap after `init`. A file may make its caller
/// wait for the disk (bulk lane). A reader that does not read makes nobody wait: no more packets are taken, so that the link's
/// policy counts, and every 10 ms it is tried again. Once nothing more comes, the reader gets `patience`; what it has not
/// taken then is named by a fault. A stop drops what waits here, 4 KiB and a line at most, as it drops what waits in links. An
/// interruption takes no line back: what was said was said. Secrets of the graph are taken out of every line, whoever wrote it.
///
/// On a virtual clock no timer passes the reader's time, so there it is waited for at once, for as long.
@safe
struct LineSink: ~Copyable {
  /// Time between two attempts while the reader does not read.
  private static let retry: Nanoseconds = 10_000_000

  /// The parameter of both nodes.
  static let patience = ParameterContract(
    "patience", .number(0...86_400_000), unit: "ms", default: 1_000,
    text: "how long a reader that takes nothing is waited for at the end")

  /// Bytes by which lines may grow when there are no secrets at first.
  private static let roomForMarks = 4_096

  private var target: LineTarget
  private let patience: Nanoseconds
  private let isVirtual: Bool
  private let inputs: Int
  private let secrets: Secrets
  private let form: Secrets.Form
  private let buffer: UnsafeMutablePointer<UInt8>
  private let size: Int
  /// A person's terminal, which obeys control characters.
  private let isTerminal: Bool
  private var count = 0
  /// Since when the reader has taken nothing although nothing more comes; nil: it took something, or it is not the end.
  private var waitsSince: Nanoseconds?

  /// Lines for a target, of a node with this setup, from all its inputs.
  init(_ target: consuming LineTarget, _ setup: borrowing NodeSetup) {
    patience = Nanoseconds(setup.parameters.number("patience") * 1e6)
    isVirtual = setup.isVirtual
    inputs = setup.inputs.count
    // The longest line always fits, behind the break that mends an unfinished one.
    let longestPacket = setup.inputs.reduce(0) { max($0, $1.shape?.packetBytes ?? 0) }
    secrets = setup.secrets
    form = setup.inputs.contains { $0.shape?.format == .event } ? .json : .text
    // Secrets may come while the graph runs, mostly one in a line.
    let longestLine = secrets.isEmpty ? longestPacket + Self.roomForMarks : longestPacket * Secrets.growth
    size = target.unit + longestLine + 2
    unsafe buffer = .allocate(capacity: size)
    isTerminal = target.isTerminal
    self.target = target
  }

  deinit {
    // A stop comes without a last call.
    if count > 0 { _ = unsafe target.write(buffer, count) }
    unsafe buffer.deallocate()
  }

  // MARK: Calls

  /// Takes what waits, as long as it can be written.
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try begin()
    try carry(&ports)
    if count > 0 { try waitForReader(&ports) }
    return .done
  }

  /// Writes the rest.
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

  /// Takes and writes until nothing waits, or nothing is taken any more.
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

  /// Asks to be called again, or gives the reader up.
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

  /// Ends a line that is there already.
  mutating func addBreak() { add(10) }

  /// Takes lines for one write: one packet of each input in turn, so that events of several nodes stay about in their order.
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

  /// Adds one packet's text as a line, without the secrets of the graph.
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
      secrets.hide(in: text.extracting(0..<length), form) { byte in
        if count < size - 2 { add(inLine: byte) } else { isWhole = false }
      }
      // More marks than anybody could foresee: what is left of the line would be no JSON.
      if !isWhole {
        count = start
        for byte in Secrets.mark.utf8 { add(byte) }
      }
    }
    add(10)
  }

  /// Line breaks would make two lines of one. A terminal gets no control character, nor the second byte of one of those behind ASCII
  /// (U+0080 to U+009F).
  private mutating func add(inLine byte: UInt8) {
    guard isTerminal else { return add(byte == 10 || byte == 13 ? 32 : byte) }
    let follows = unsafe count > 0 && buffer[count - 1] == 0xC2
    let isControl = byte < 0x20 || byte == 0x7F || (follows && (0x80..<0xA0).contains(byte))
    // U+00A0, a space of no other meaning, has the same first byte.
    add(isControl ? (follows && byte >= 0x80 ? 0xA0 : 32) : byte)
  }

  private mutating func add(_ byte: UInt8) {
    unsafe buffer[count] = byte
    count += 1
  }

  // MARK: Words

  /// What was taken and not written, in lines and bytes. What waits in the links is counted there.
  private var loss: NodeFault {
    var lines: Int32 = 0
    for index in 0..<count where unsafe buffer[index] == 10 { lines &+= 1 }
    return NodeFault(.stalled, code: lines, detail: Int64(count))
  }

  /// A fault of this sink in words. Control side.
  func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .system: FileWords.writeFailure(fault.code, target.name, kept: "the lines written before are whole")
    case .stalled:
      "nobody read \(target.name) for \(patience / 1_000_000) ms: \(fault.code) lines (\(fault.detail) bytes) "
        + "and what waits in the links were not written; keep its reader reading, or raise \"patience\""
    default: nil
    }
  }
}
