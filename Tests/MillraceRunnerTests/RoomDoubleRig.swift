#if RTC
  import MillraceCore
  import MillraceDoubles
  import MillraceNet
  import MillraceRoomWire

  @testable import MillraceRunner

  /// The double `room` in this process, and the lines that it has written.
  final class RoomDoubleRig: Sendable {
    let double: any RunningDouble
    private let log: Locked<[String]>

    private init(_ double: any RunningDouble, _ log: Locked<[String]>) {
      self.double = double
      self.log = log
    }

    /// - Parameter scenario: JSON; nil: the standard one.
    static func begin(
      _ scenario: String? = nil, _ change: (inout DoubleOptions) -> Void = { _ in }
    ) async throws(DoubleProblem) -> RoomDoubleRig {
      let log = Locked<[String]>([])
      var options = DoubleOptions()
      if let scenario { options.scenario = .text(scenario, name: "room.json") }
      options.watch = { line in log.withLock { $0.append(line) } }
      change(&options)
      return RoomDoubleRig(try await RoomProgram.start(options), log)
    }

    /// Why a double does not start; nil: it does.
    static func problem(_ scenario: String?) async -> String? {
      do throws(DoubleProblem) {
        try await begin(scenario).double.stop()
        return nil
      } catch {
        return error.description
      }
    }

    var lines: [String] { log.withLock { $0 } }

    /// Waits for a line.
    func line(_ part: String) async throws -> String {
      try await roomDoubleWaits(for: "the line \(part)") { lines.first { $0.contains(part) } }
    }

    /// A connection, which may not be open yet.
    func client(_ change: (inout WebSocketRequest) -> Void = { _ in }) throws -> RoomDoubleClient {
      try RoomDoubleClient(double.port, change)
    }

    /// A member of the room `lobby`.
    func member(_ user: String, token: String? = nil) async throws -> RoomDoubleClient {
      let client = try client()
      let shown = token.map { #","token":"\#($0)""# } ?? ""
      client.send(#"{"id":1,"op":"login","payload":{"version":1,"user":"\#(user)"\#(shown)}}"#)
      client.send(#"{"id":2,"op":"join","payload":{"room":"lobby"}}"#)
      _ = try await client.text(#"{"answer":2,"ok":true"#)
      return client
    }
  }

  /// A client of a hub that writes its messages itself, and keeps what it is sent.
  final class RoomDoubleClient: Sendable {
    private struct Inbox: Sendable {
      var isOpen = false
      /// Sent once it is open.
      var waiting: [String] = []
      var texts: [String] = []
      var end: WebSocketEnd?
    }

    private let inbox: Locked<Inbox>
    private let socket: WebSocket

    fileprivate init(_ port: Int, _ change: (inout WebSocketRequest) -> Void) throws {
      let inbox = Locked(Inbox())
      self.inbox = inbox
      var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)\(RoomWire.path)"))
      request.protocols = [RoomWire.subprotocol]
      request.proxy = .direct
      // A machine that runs all tests at once takes its time.
      request.limits.open = 600_000
      request.limits.ping = 0
      change(&request)
      socket = WebSocket.open(request) { event in
        inbox.withLock { inbox -> Void in
          switch event {
          case .opened: inbox.isOpen = true
          case .text(let bytes): inbox.texts.append(String(decoding: bytes, as: UTF8.self))
          case .closed(let end): inbox.end = end
          case .binary, .drained: break
          }
        }
      }
    }

    /// Sends a message once the connection is open; nothing if it never is.
    func send(_ text: String) {
      inbox.withLock { $0.waiting.append(text) }
      flush()
    }

    private func flush() {
      let ready = inbox.withLock { inbox -> [String] in
        guard inbox.isOpen else { return [] }
        defer { inbox.waiting = [] }
        return inbox.waiting
      }
      for text in ready { _ = socket.send(text: text) }
    }

    func close() { socket.close() }

    /// Messages so far.
    var texts: [String] { inbox.withLock { $0.texts } }
    /// Messages so far that refuse something.
    var problems: [String] { texts.filter { $0.contains(#""error""#) } }

    /// Waits for a message with a text.
    func text(_ part: String) async throws -> String {
      try await wait(for: part) { $0.texts.first { $0.contains(part) } }
    }

    func opened() async throws { _ = try await wait(for: "the opening") { $0.isOpen ? true : nil } }

    func closed() async throws -> WebSocketEnd { try await wait(for: "the end") { $0.end } }

    private func wait<Value: Sendable>(
      for what: String, _ find: @Sendable (Inbox) -> Value?
    ) async throws -> Value {
      try await roomDoubleWaits(for: what) {
        flush()
        return inbox.withLock { find($0) }
      }
    }
  }

  /// What did not happen within ten minutes.
  struct RoomDoubleSilence: Error, CustomStringConvertible { let description: String }

  private func roomDoubleWaits<Value: Sendable>(
    for what: String, _ find: @Sendable () -> Value?
  ) async throws -> Value {
    let end = ContinuousClock.now + .seconds(600)
    while ContinuousClock.now < end {
      if let value = find() { return value }
      try await Task.sleep(for: .milliseconds(1))
    }
    throw RoomDoubleSilence(description: "never came: \(what)")
  }
#endif
