import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceService
import TestNet
import TestSystem
import Testing

/// A wire to a server of the test, over TLS unless told otherwise, and the events it reports, as text. The wire is used on its event loop
/// only.
private final class TestWire: @unchecked Sendable {
  /// Held by the receiver of the events, which the stream holds until it is closed.
  private final class Mark: Sendable {}

  private let words = Locked<[String]>([])
  private var wire: StreamWire?
  private weak var mark: Mark?
  /// Called on the event loop with each word and its wire, before it is recorded.
  private let during: (String, StreamWire) -> Void

  init(
    _ port: Int, isSecure: Bool = true, trust: NetTrust = .file(Certificates.authority),
    backlog: Int = 1 << 20,
    during: @escaping (String, StreamWire) -> Void = { _, _ in }
  ) throws {
    self.during = during
    var request = ByteStreamRequest(
      try WebAddress(isSecure ? "tls://localhost:\(port)" : "tcp://127.0.0.1:\(port)"))
    request.trust = trust
    request.proxy = .direct
    request.limits.open = 600_000
    request.limits.close = 600_000
    request.limits.backlog = backlog
    let mark = Mark()
    self.mark = mark
    NetLoop.shared.run { [self, request] in
      wire = StreamWire(
        request, on: .shared, framing: LengthFraming(largest: 1_000), vendor: "v",
        voice: { Array("a".utf8) + $0 },
        parse: Self.parse
      ) { [self] event in withExtendedLifetime(mark) { note(Self.word(event)) } }
    }
  }

  private func note(_ word: String) {
    if let wire { during(word, wire) }
    words.withLock { $0.append(word) }
  }

  private static func parse(_ bytes: [UInt8]) -> ServiceEvent<String> {
    switch bytes.first {
    case UInt8(ascii: "a"): .audio(Array(bytes.dropFirst()))
    case UInt8(ascii: "m"): .message(String(decoding: bytes.dropFirst(), as: UTF8.self))
    default: .invalidMessage("of no kind")
    }
  }

  private static func word(_ event: ServiceEvent<String>) -> String {
    switch event {
    case .opened: "opened"
    case .message(let text): "message \(text)"
    case .invalidMessage(let text): "invalid \(text)"
    case .audio(let bytes): "audio \(bytes)"
    case .image(let bytes): "image \(bytes)"
    case .closed(let error):
      "closed \(error.vendor) \(error.category.rawValue) \(error.reaction.name) \(error.name ?? "-")"
    }
  }

  var all: [String] { words.withLock { $0 } }

  /// Does something with the wire on its event loop.
  @discardableResult
  func onLoop<Answer: Sendable>(_ body: @escaping @Sendable (StreamWire) -> Answer) async throws -> Answer {
    let answer = await withCheckedContinuation { continuation in
      NetLoop.shared.run { [self] in continuation.resume(returning: wire.map(body)) }
    }
    return try #require(answer)
  }

  /// Gives the wire up, and waits until its stream is closed: everything it reports was reported.
  func giveUp() async throws {
    await withCheckedContinuation { continuation in
      NetLoop.shared.run { [self] in
        wire = nil
        continuation.resume()
      }
    }
    while mark != nil { try await Task.sleep(for: .milliseconds(1)) }
  }

  /// Waits until so many events were reported; the time limit of the suite ends a wait in vain.
  func wait(_ count: Int) async throws -> [String] {
    while all.count < count { try await Task.sleep(for: .milliseconds(1)) }
    return all
  }
}

/// The server's end of the first connection: what it reads as a client's records, and what became of it.
private final class TestServer: Sendable {
  private struct State {
    var framing = LengthFraming(largest: 1 << 20)
    var stream: ByteStream?
    var records: [String] = []
    var end: String?
  }
  private let state = Locked(State())
  private let listener = Locked<ByteStreamServer?>(nil)
  let port: Int

  /// - Parameters:
  ///   - isSecure: over TLS.
  ///   - isReading: false: until its stream is resumed, it takes nothing of what the client sends.
  init(isSecure: Bool = true, isReading: Bool = true) async throws {
    var limits = ByteStreamLimits()
    limits.open = 600_000
    limits.close = 600_000
    let state = state
    let server = try await ByteStreamServer.listen(
      port: 0, identity: isSecure ? Certificates.localhost : nil, limits: limits
    ) { _ in
      .accept { stream in
        if !isReading { stream.pause() }
        state.withLock { $0.stream = stream }
        return { event in
          switch event {
          case .bytes(let bytes):
            state.withLock { state in
              let records = (try? state.framing.records(in: bytes)) ?? [Array("no records".utf8)]
              state.records += records.map { String(decoding: $0, as: UTF8.self) }
            }
          case .finished: stream.finish()
          case .closed(let end): state.withLock { $0.end = end.problem?.kind.rawValue ?? "ended" }
          case .opened, .drained: break
          }
        }
      }
    }
    port = server.port
    listener.withLock { $0 = server }
  }

  func stop() { listener.withLock { $0 }?.stop() }

  var stream: ByteStream {
    get async throws {
      while true {
        if let stream = state.withLock({ $0.stream }) { return stream }
        try await Task.sleep(for: .milliseconds(1))
      }
    }
  }

  func records(_ count: Int) async throws -> [String] {
    while true {
      let records = state.withLock { $0.records }
      if records.count >= count { return records }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// How the connection ended, and what was read of it.
  func end() async throws -> (how: String, records: [String]) {
    while true {
      let (end, records) = state.withLock { ($0.end, $0.records) }
      if let end { return (end, records) }
      try await Task.sleep(for: .milliseconds(1))
    }
  }
}

/// True when the system of a client on this machine has received the end of its server's direction: the client's socket is in the state
/// CLOSE_WAIT, 8 in proc_pid_net(5).
private func isHalfClosed(from port: Int) -> Bool {
  let digits = String(port, radix: 16, uppercase: true)
  let peer = "0100007F:" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
  let lines = String(decoding: contents("/proc/net/tcp"), as: UTF8.self).split(separator: "\n")
  return lines.contains { line in
    let fields = line.split(separator: " ")
    return fields.count > 3 && fields[2] == peer && fields[3] == "08"
  }
}

private func record(_ text: String) -> [UInt8] {
  var framing = LengthFraming(largest: 1 << 20)
  return framing.bytes(of: Array(text.utf8))
}

@Suite("a framed byte stream as a wire", .timeLimit(.minutes(30))) struct StreamWireTests {
  @Test("messages and frames of audio go up as records, and records come back as what they are parsed to")
  func both() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port)
    _ = try await wire.wait(1)
    let isSent = try await wire.onLoop { wire in
      [wire.send(.text(Array("one".utf8))), wire.send(.binary([])), wire.send(voice: Array("23".utf8))]
    }
    #expect(isSent == [true, true, true])
    #expect(try await server.records(3) == ["one", "", "a23"])
    let stream = try await server.stream
    let bytes = record("mhello") + record("a\u{1}\u{2}") + record("x") + record("mbye")
    // Wherever the network cuts.
    for start in stride(from: 0, to: bytes.count, by: 7) {
      #expect(stream.send(Array(bytes[start..<min(start + 7, bytes.count)])))
    }
    #expect(
      try await wire.wait(5)
        == ["opened", "message hello", "audio [1, 2]", "invalid of no kind", "message bye"])
    try await wire.onLoop { $0.cancel() }
    server.stop()
  }

  @Test("a pause holds back even what came with the record that caused it, and nothing is lost or reordered")
  func pauses() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port) { word, wire in
      if word == "message 0" || word == "message 7" { wire.pause() }
    }
    let stream = try await server.stream
    _ = try await wire.wait(1)
    #expect(stream.send((0..<100).flatMap { record("m\($0)") }))
    _ = try await wire.wait(2)
    for (seen, next) in [(2, 9), (9, 101)] {
      // Nothing is reported from within the call, either.
      let during = try await wire.onLoop { [wire] its in
        let before = wire.all.count
        its.resume()
        return [before, wire.all.count]
      }
      #expect(during == [seen, seen])
      _ = try await wire.wait(next)
    }
    #expect(wire.all == ["opened"] + (0..<100).map { "message \($0)" })
    try await wire.onLoop { $0.cancel() }
    server.stop()
  }

  @Test("a pause that follows a resume at once holds")
  func pausesAgain() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port) { word, wire in if word == "message 0" { wire.pause() } }
    let stream = try await server.stream
    _ = try await wire.wait(1)
    #expect(stream.send(record("m0") + record("m1")))
    _ = try await wire.wait(2)
    try await wire.onLoop { wire in
      wire.resume()
      wire.pause()
    }
    // What the resume had the loop do was done before this.
    let counted = try await wire.onLoop { [wire] _ in wire.all.count }
    #expect(counted == 2)
    try await wire.onLoop { $0.resume() }
    #expect(try await wire.wait(3) == ["opened", "message 0", "message 1"])
    try await wire.onLoop { $0.cancel() }
    server.stop()
  }

  @Test("an end that comes during a pause is reported after the resume, behind what was read before it")
  func endsWhilePaused() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port) { word, wire in if word == "message 0" { wire.pause() } }
    let stream = try await server.stream
    _ = try await wire.wait(1)
    #expect(stream.send(record("m0") + record("m1") + record("m2")))
    stream.finish()
    _ = try await wire.wait(2)
    while !isHalfClosed(from: server.port), wire.all.count == 2 {
      try await Task.sleep(for: .milliseconds(1))
    }
    // In between the loop looks at its sockets.
    for _ in 0..<20 { try await wire.onLoop { _ in } }
    #expect(wire.all.count == 2)
    try await wire.onLoop { $0.resume() }
    #expect(
      try await wire.wait(5)
        == ["opened", "message 0", "message 1", "message 2", "closed v network reconnect -"])
    _ = try await server.end()
    server.stop()
  }

  @Test("a record beyond the limit ends the stream with an error after which a session reconnects")
  func tooLong() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port)
    let stream = try await server.stream
    _ = try await wire.wait(1)
    #expect(stream.send([0, 0, 3, 233]))
    #expect(try await wire.wait(2) == ["opened", "closed v network reconnect tooLarge"])
    _ = try await server.end()
    #expect(wire.all.count == 2)
    server.stop()
  }

  @Test("records in front of one beyond the limit are reported before the end, also behind a pause")
  func beforeTooLong() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port) { word, wire in if word == "message 0" { wire.pause() } }
    let stream = try await server.stream
    _ = try await wire.wait(1)
    // With TLS they are decrypted, and arrive, together.
    #expect(stream.send(record("m0") + record("m1") + [0, 0, 3, 233]))
    _ = try await wire.wait(2)
    try await wire.onLoop { $0.resume() }
    #expect(
      try await wire.wait(4)
        == ["opened", "message 0", "message 1", "closed v network reconnect tooLarge"])
    _ = try await server.end()
    server.stop()
  }

  @Test(
    "a service that ends its direction has ended the connection, and in the middle of a record something is lost",
    arguments: [true, false])
  func finished(isWhole: Bool) async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port)
    let stream = try await server.stream
    _ = try await wire.wait(1)
    #expect(stream.send(isWhole ? record("mlast") : Array(record("mlast").dropLast())))
    stream.finish()
    let words = try await wire.wait(isWhole ? 3 : 2)
    #expect(
      words
        == (isWhole
          ? ["opened", "message last", "closed v network reconnect -"]
          : ["opened", "closed v network reconnect lost"]))
    #expect(try await server.end().how == "ended")
    server.stop()
  }

  @Test(
    "closing sends what waits, cancelling loses it, and no event follows either",
    arguments: [true, false])
  func leaves(isProper: Bool) async throws {
    // Without TLS, whose close alert a cancelled stream would wait for: what the server takes meanwhile is sent.
    let server = try await TestServer(isSecure: false, isReading: false)
    let wire = try TestWire(server.port, isSecure: false, backlog: 64 << 20)
    let stream = try await server.stream
    _ = try await wire.wait(1)
    // More than the buffers of both systems hold, so that the last record waits on this side.
    let count = 32
    let isTaken = try await wire.onLoop { wire in
      let large = ServiceContent.binary([UInt8](repeating: 0, count: 1 << 20))
      let isTaken = (0..<count).allSatisfy { _ in wire.send(large) }
      let isLastTaken = wire.send(.text(Array("bye".utf8)))
      if isProper { wire.close() } else { wire.cancel() }
      return isTaken && isLastTaken
    }
    #expect(isTaken)
    // Sent to somebody who has left.
    _ = stream.send(record("mlate"))
    stream.resume()
    let end = try await server.end()
    #expect((end.records.last == "bye") == isProper)
    if isProper { #expect(end.records.count == count + 1) }
    try await wire.giveUp()
    #expect(wire.all == ["opened"])
    server.stop()
  }

  @Test("with a peer that reads nothing, the backlog grows to its limit, and then nothing more is taken")
  func stalls() async throws {
    let server = try await TestServer(isReading: false)
    let limit = 200_000
    let wire = try TestWire(server.port, backlog: limit)
    _ = try await wire.wait(1)
    let full = try await wire.onLoop { wire in
      while wire.send(.binary([UInt8](repeating: 0, count: 60_000))) {}
      return wire.backlog
    }
    #expect(full > limit - 60_004 && full <= limit)
    try await wire.onLoop { $0.cancel() }
    server.stop()
  }

  @Test("a certificate that is not trusted is an error that is not retried, and its only event")
  func untrusted() async throws {
    let server = try await TestServer()
    let wire = try TestWire(server.port, trust: .system)
    #expect(try await wire.wait(1) == ["closed v network refuse tls"])
    server.stop()
  }
}
