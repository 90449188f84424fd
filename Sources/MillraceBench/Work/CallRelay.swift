import CMillraceSys
import Glibc
import MillraceCore
import Synchronization

/// Stands between a client and a server of WHIP on this machine, so that the media of their call goes over a lossy link.
///
/// It passes on the requests and answers of one call, each half a round trip late, and replaces the candidates of both descriptions by
/// those of the link: the first UDP candidate of a side is the link's end for the other side, further ones are left out. The request itself
/// is not lost, which TCP would only delay.
final class CallRelay: Sendable {
  /// The port for the client.
  let port: Int
  /// What the media goes over.
  let link: LossyLink

  private let target: Int
  private let network: LossyNetwork
  private let listener: Int32
  private let sockets = Locked<[Int32]>([])
  private let isOver = Atomic<Bool>(false)

  /// More than a description has.
  private static let largest = 262_144

  /// - Parameter target: the server's port.
  init(to target: Int, over network: LossyNetwork) throws {
    self.target = target
    self.network = network
    let link = try LossyLink(network)
    self.link = link
    let made: (descriptor: Int32, port: Int)
    do { made = try LocalSocket.listener() } catch {
      link.stop()
      throw error
    }
    listener = made.descriptor
    port = made.port
    let code = DetachedThread.start("call-relay") { [self] in serve() }
    guard code == 0 else {
      link.stop()
      close(made.descriptor)
      throw MeasurementProblem("no thread for a relay (errno \(code))")
    }
  }

  /// Closes everything, soon.
  func stop() {
    isOver.store(true, ordering: .relaxed)
    shutdown(listener, Int32(SHUT_RDWR))
    sockets.withLock { for socket in $0 { shutdown(socket, Int32(SHUT_RDWR)) } }
    link.stop()
  }

  // MARK: Connections

  private func serve() {
    while case let client = accept(listener, nil, nil), client >= 0 {
      sockets.withLock { $0.append(client) }
      let code = DetachedThread.start("call-relay") { [self] in
        converse(client)
        release(client)
      }
      if code != 0 { release(client) }
    }
    close(listener)
  }

  private func release(_ socket: Int32) {
    sockets.withLock { $0.removeAll { $0 == socket } }
    close(socket)
  }

  /// Passes on one request and its answer after the other.
  private func converse(_ client: Int32) {
    // The handshake of TCP.
    pause(network.roundTrip)
    let server = LocalSocket.connection(to: target)
    guard server >= 0 else { return }
    sockets.withLock { $0.append(server) }
    defer { release(server) }
    var (up, down) = (Reader(client), Reader(server))
    while !isOver.load(ordering: .relaxed), let request = up.next() {
      pause(network.roundTrip / 2)
      guard write(rewritten(request, isFromCaller: true), to: server), let answer = down.next() else {
        return
      }
      pause(network.roundTrip / 2)
      guard write(rewritten(answer, isFromCaller: false), to: client) else { return }
    }
  }

  private func write(_ bytes: [UInt8], to socket: Int32) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let more = unsafe bytes.withUnsafeBytes {
        unsafe send(socket, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard more > 0 else { return false }
      sent += more
    }
    return true
  }

  // MARK: Messages

  /// A request or an answer of HTTP.
  private struct Message {
    /// Without the empty line at its end.
    var head: [UInt8]
    var body: [UInt8]
  }

  /// Reads messages whose length their head tells.
  private struct Reader {
    private let socket: Int32
    private var rest: [UInt8] = []

    init(_ socket: Int32) { self.socket = socket }

    /// The next message; nil: the connection has ended, or sends what is no message.
    mutating func next() -> Message? {
      while true {
        if let end = Self.headEnd(rest) {
          let head = Array(rest[..<end])
          let whole = end + 4 + Self.bodyLength(head)
          guard whole <= CallRelay.largest else { return nil }
          if rest.count >= whole {
            let body = Array(rest[(end + 4)..<whole])
            rest.removeFirst(whole)
            return Message(head: head, body: body)
          }
        }
        guard rest.count < CallRelay.largest else { return nil }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        rest += buffer.prefix(count)
      }
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
      guard bytes.count >= 4 else { return nil }
      return (0...(bytes.count - 4)).first {
        bytes[$0] == 13 && bytes[$0 + 1] == 10 && bytes[$0 + 2] == 13 && bytes[$0 + 3] == 10
      }
    }

    private static func bodyLength(_ head: [UInt8]) -> Int {
      guard let line = CallRelay.lines(head).first(where: { CallRelay.isLength($0) }) else { return 0 }
      let digits = line.drop { !$0.isNumber }.prefix { $0.isNumber }
      // What is no length, or more than an integer has, is taken for too large.
      return min(Int(digits) ?? CallRelay.largest, CallRelay.largest)
    }
  }

  private static func lines(_ bytes: [UInt8]) -> [String] {
    bytes.split(separator: 10, omittingEmptySubsequences: false).map { line in
      String(decoding: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
    }
  }

  private static func isLength(_ line: String) -> Bool { line.lowercased().hasPrefix("content-length:") }

  /// A message whose candidates are those of the link, as bytes.
  private func rewritten(_ message: Message, isFromCaller: Bool) -> [UInt8] {
    let kept = message.head + [13, 10, 13, 10] + message.body
    let lines = Self.lines(message.body)
    guard lines.contains(where: { Self.candidate($0) != nil }) else { return kept }
    var isFirst = true
    let body = lines.compactMap { line -> String? in
      guard let parts = Self.candidate(line) else { return line }
      guard isFirst, let number = Int(parts[5]) else { return nil }
      isFirst = false
      return replaced(parts, at: number, isFromCaller: isFromCaller)
    }
    let text = Array(body.joined(separator: "\r\n").utf8)
    let head = Self.lines(message.head).filter { !Self.isLength($0) } + ["Content-Length: \(text.count)"]
    return Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + text
  }

  /// The parts of a line with a candidate (RFC 8839 section 5.1); nil: it is another line. One that does not use UDP has no port here, so
  /// that it is left out.
  private static func candidate(_ line: String) -> [String]? {
    guard line.hasPrefix("a=candidate:") else { return nil }
    var parts = line.split(separator: " ").map(String.init)
    guard parts.count >= 8 else { return parts + [String](repeating: "", count: 8 - parts.count) }
    if parts[2].lowercased() != "udp" { parts[5] = "" }
    return parts
  }

  /// The candidate of an end is where the link stands for it.
  private func replaced(_ parts: [String], at port: Int, isFromCaller: Bool) -> String {
    if isFromCaller { link.set(callerAt: port) } else { link.set(calleeAt: port) }
    var parts = parts
    parts[4] = "127.0.0.1"
    // Where the callee sends to is the link's end at the callee, and the other way round.
    parts[5] = String(isFromCaller ? link.calleePort : link.callerPort)
    return parts.joined(separator: " ")
  }
}
