internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet

/// One connection of a bot. On the network thread.
final class BackendConnection: @unchecked Sendable {
  private static let rate = 16_000
  /// More than the node accepts by default.
  private static let oversized = 1 << 20

  private let double: BackendDouble
  private let socket: WebSocket
  /// Number of the current reply; scheduled steps of an older one are skipped.
  private var generation = 0
  private var isStalled = false
  private var isOver = false
  private var hasBegun = false

  init(_ double: BackendDouble, _ socket: WebSocket) {
    self.double = double
    self.socket = socket
  }

  func handle(_ event: WebSocketEvent) {
    switch event {
    case .opened: begin()
    case .text(let bytes): if !isStalled { take(bytes) }
    case .binary(let bytes):
      double.change { report in
        report.speechSamples += stride(from: 0, to: bytes.count - 1, by: 2)
          .count { bytes[$0] != 0 || bytes[$0 + 1] != 0 }
        if bytes.count % 2 != 0 { report.violations.append("oddFrame: \(bytes.count) bytes of sound") }
      }
    case .drained: break
    case .closed(let end):
      isOver = true
      generation += 1
      if end.code == 1000 { double.change { $0.sessionEnds += 1 } }
    }
  }

  private func begin() {
    if misbehave(at: .connecting) { return }
    later(double.script.delay) { [self] in
      hasBegun = true
      say(.conversationStarted(id: "backend"))
      say(.state(.listening))
      _ = misbehave(at: .listening)
    }
  }

  private func take(_ bytes: [UInt8]) {
    do {
      guard case .command(let command, _)? = try DialogControl.read(try JSONValue(parsing: bytes)) else {
        return
      }
      switch command {
      case .ask: answer()
      case .interrupt:
        generation += 1
        say(.interrupted(by: .user))
        if hasBegun { say(.state(.listening)) }
      default: break
      }
    } catch {
      double.change { $0.violations.append("noCommand: \(error)") }
    }
  }

  // MARK: Replies

  private func answer() {
    generation += 1
    let generation = generation
    let number = double.nextReply()
    say(.state(.thinking))
    if misbehave(at: .thinking) { return }
    later(10) { [self] in
      guard generation == self.generation else { return }
      say(.state(.responding))
      say(.replyStarted(round: nil))
      if misbehave(at: .responding) { return }
      let count = double.script.replyMilliseconds * Self.rate / 1_000 * 2
      let perByte = Double(double.script.replyMilliseconds) / double.script.speed / Double(count)
      send(0..<count, of: number, generation, perByte)
    }
  }

  private func send(_ rest: Range<Int>, of number: Int, _ generation: Int, _ perByte: Double) {
    guard generation == self.generation, !isStalled, !isOver else { return }
    let total = double.script.replyMilliseconds * Self.rate / 1_000 * 2
    if rest.isEmpty {
      if misbehave(at: .answered) { return }
      say(.replyEnded(round: nil, utterances: 0))
      return say(.state(.listening))
    }
    let count = min(double.script.chunk, rest.count)
    let isBefore = rest.lowerBound * 2 < total
    let bytes = rest.prefix(count).map { UInt8(truncatingIfNeeded: $0 % 2 == 0 ? number : number >> 8) }
    if socket.send(bytes, isText: false) { double.change { $0.audioBytes[number, default: 0] += count } }
    let left = rest.dropFirst(count)
    if isBefore && left.lowerBound * 2 >= total && misbehave(at: .midway) { return }
    later(Int(Double(count) * perByte)) { [self] in
      send(left.lowerBound..<left.upperBound, of: number, generation, perByte)
    }
  }

  // MARK: Sending

  private func say(_ event: DialogEvent) {
    guard !isStalled && !isOver else { return }
    _ = socket.send(text: event.json.text)
  }

  private func later(_ milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
    _ = NetLoop.shared.run(after: Nanoseconds(milliseconds) * 1_000_000, body)
  }

  /// True when the connection does not continue.
  private func misbehave(at place: ServiceFault.Place) -> Bool {
    guard let fault = double.fault(at: place) else { return false }
    switch fault.kind {
    case .stall:
      isStalled = true
      // Pings are answered on a lower layer, unless reading is paused.
      socket.pause()
    case .drop, .expire: socket.cancel()
    case .failure: socket.close(code: 1011, reason: "as the script says")
    case .oversized: _ = socket.send([UInt8](repeating: 0x20, count: Self.oversized - 1), isText: true)
    case .malformed:
      _ = socket.send(text: #"{"event":""# + ServiceFault.userText)
      return false
    case .unknown:
      let message: JSONValue = ["event": "astonished", "why": .string(ServiceFault.userText)]
      _ = socket.send(text: message.text)
      double.change { $0.unknownMessages.append(message) }
      return false
    case .hold, .repeated, .outOfOrder, .error, .kick: break
    }
    return true
  }
}
