#if RTC
  internal import MillraceConformance
  internal import MillraceCore
  internal import MillraceDoubles
  internal import MillraceJSON
  internal import MillraceNet
  internal import MillraceRoom
  internal import MillraceRoomWire

  /// Writes the report of what members and hub send, and plays the scenario's refusals and fault. On the hub's thread.
  ///
  /// Of messages it writes the names only: what members write is nobody else's business.
  final class RoomWatch: RoomServerWatch {
    private struct State {
      var sockets: [RoomConnectionID: WebSocket] = [:]
      var stalled: Set<RoomConnectionID> = []
    }

    /// What no member may do at any time. Other refusals may come of what others did meanwhile.
    private static let violations: Set<RoomErrorName> = [
      .badMessage, .repeatedID, .unknownOp, .badPayload, .unknownVersion,
    ]
    /// The most characters of a name in the report.
    private static let nameCharacters = 32

    private let server: RoomDouble.Server
    private let state = Locked(State())

    init(_ server: RoomDouble.Server) { self.server = server }

    func refusal() -> (status: Int, text: String)? {
      let number = server.countConnection()
      // A hub's tokens come in messages, not with the handshake.
      guard let refusal = server.refusal(of: number, key: "") else { return nil }
      return (status: refusal.status, text: refusal.text)
    }

    // MARK: Connections

    func opened(_ connection: RoomConnectionID, _ socket: WebSocket) {
      state.withLock { $0.sockets[connection] = socket }
      if let fault = server.firstFault(at: .connecting) { play(fault, on: connection) }
    }

    func joined(on connection: RoomConnectionID) -> Bool {
      guard let fault = server.firstFault(at: .listening) else { return false }
      if fault.kind == .kick {
        server.note("# kick: the room ends")
        return true
      }
      play(fault, on: connection)
      return false
    }

    func closed(_ connection: RoomConnectionID) {
      state.withLock { state in
        state.sockets[connection] = nil
        state.stalled.remove(connection)
      }
    }

    private func isStalled(_ connection: RoomConnectionID) -> Bool {
      state.withLock { $0.stalled.contains(connection) }
    }

    // MARK: Messages

    func receives(_ bytes: [UInt8], from connection: RoomConnectionID) -> Bool {
      guard !isStalled(connection) else { return false }
      let message = try? JSONValue(parsing: bytes)
      server.note("> \(Self.short(message?["op"]?.string ?? "no request"))")
      return true
    }

    func sends(_ bytes: [UInt8], to connection: RoomConnectionID) -> Bool {
      guard !isStalled(connection) else { return false }
      guard let message = try? JSONValue(parsing: bytes) else { return true }
      if let event = message["event"]?.string {
        server.note("< \(event)")
        if event == "error" { judge(message["payload"]) }
      } else if let error = message["error"] {
        server.note("< answer: \(error["name"]?.string ?? "")")
        judge(error)
      } else {
        server.note("< answer")
      }
      return true
    }

    /// What the hub says about a request names members of it, never their content.
    private func judge(_ error: JSONValue?) {
      guard let word = error?["name"]?.string, let name = RoomErrorName(rawValue: word),
        Self.violations.contains(name)
      else { return }
      server.violate(word, error?["text"]?.string ?? "")
    }

    private static func short(_ text: String) -> String {
      String(String.UnicodeScalarView(text.unicodeScalars.prefix(nameCharacters)))
    }

    // MARK: Faults

    private func play(_ fault: ServiceFault, on connection: RoomConnectionID) {
      guard let socket = state.withLock({ $0.sockets[connection] }) else { return }
      server.note("# \(fault.kind.rawValue)")
      switch fault.kind {
      case .drop: socket.cancel()
      case .stall: state.withLock { state -> Void in state.stalled.insert(connection) }
      case .malformed:
        _ = socket.send(text: #"{"event":"message","payload":{"text":"\#(ServiceFault.userText)"#)
      case .unknown:
        _ = socket.send(text: #"{"event":"weather","payload":{"text":"\#(ServiceFault.userText)"}}"#)
      case .oversized: _ = socket.send(Self.oversized, isText: true)
      default: break
      }
    }

    /// A message one byte longer than any may be.
    private static var oversized: [UInt8] {
      let (head, tail) = (#"{"event":"message","payload":{"from":"hub","text":""#, #""}}"#)
      let filling = RoomLimits.messageBytes + 1 - head.utf8.count - tail.utf8.count
      return Array((head + String(repeating: "a", count: filling) + tail).utf8)
    }
  }
#endif
