import MillraceConformance
import MillraceDoubles
import MillraceJSON
import MillraceNet

/// An echo service on this machine.
final class EchoDouble: RunningDouble {
  typealias Server = DoubleServer<NoMembers, NoMembers>

  private let server: Server
  /// Its files are there as long as the object; nil: the double was started with a certificate.
  private let certificate: DoubleCertificate?

  init(
    _ scenario: Server.Scenario, _ options: DoubleOptions = DoubleOptions()
  ) async throws(DoubleProblem) {
    let server = Server(scenario, observer: options.observer, watch: options.watch)
    self.server = server
    let certificate = try options.identity == nil ? DoubleCertificate() : nil
    self.certificate = certificate
    try await server.listenForStreams(options, identity: certificate?.identity) { stream, number in
      let connection = EchoConnection(server, stream, number: number)
      return { connection.handle($0) }
    }
  }

  static func address(_ port: Int) -> String { "tls://127.0.0.1:\(port)" }
  /// The authority that a client has to trust; nil: only who started the double knows which has signed its certificate.
  var roots: String? { certificate?.identity.certificate }
  var port: Int { server.port }
  var address: String { Self.address(port) }
  var settings: [DoubleSetting] {
    var settings = [
      DoubleSetting("url", address, requirement: "the address of the double"),
      DoubleSetting("key", "key-of-the-double"),
    ]
    if let roots {
      settings.append(
        DoubleSetting("roots", roots, requirement: "the authority of the double's certificate"))
    }
    return settings
  }
  var seen: DoubleReport { server.report }
  func forget() { server.forget() }
  func stop() { server.stop() }
}

/// The records of the protocol, read and written without the code of the node's side: the same mistake must not be on both.
private struct EchoRecords {
  private static let largest = 1 << 16

  struct TooLong: Error {}

  /// Bytes that were not read yet.
  private var bytes: [UInt8] = []

  mutating func arrive(_ more: [UInt8]) { bytes += more }

  /// The next record; nil: it has not arrived as a whole.
  mutating func next() throws(TooLong) -> [UInt8]? {
    guard bytes.count >= 4 else { return nil }
    let count = bytes.prefix(4).reduce(0) { $0 * 256 + Int($1) }
    guard count <= Self.largest else { throw TooLong() }
    let end = 4 + count
    guard end <= bytes.count else { return nil }
    defer { bytes.removeFirst(end) }
    return Array(bytes[4..<end])
  }

  static func bytes(of record: [UInt8]) -> [UInt8] {
    stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: record.count >> $0) } + record
  }
}

/// One connection of a client. On the network thread.
private final class EchoConnection: @unchecked Sendable {
  private enum State { case fresh, greeted, listening, thinking, responding, complete, over }
  private enum Request: UInt8 { case hello = 0x01, audio, say, over, bye }
  private enum Kind: UInt8 { case welcome = 0x81, state, speech, audio, complete, failure, beat, goodbye }
  private enum Failure: UInt8 { case key = 1, busy, reply, service }

  private static let rate = 16_000
  /// Bytes of what the user said: 200 ms before speech is detected, and a minute in all.
  private static let preRoll = 6_400, mostHeard = 60 * 2 * rate
  /// Milliseconds between two beats.
  private static let beat = 250

  private let double: EchoDouble.Server
  private let stream: ByteStream
  private let number: Int
  private var records = EchoRecords()
  private var state = State.fresh
  private var reply = 0
  private var turn = EchoDouble.Server.Scenario.Turn()
  private var isStalled = false
  private var ear = DoubleEar(.pcm, rate: EchoConnection.rate)
  private var isHearing = false
  private var heard: [UInt8] = []
  /// What the client may send before it knows that its voice has begun a turn.
  private var crossings = Crossings<Request>()

  init(_ double: EchoDouble.Server, _ stream: ByteStream, number: Int) {
    self.double = double
    self.stream = stream
    self.number = number
  }

  func handle(_ event: ByteStreamEvent) {
    switch event {
    case .opened: beat()
    case .bytes(let bytes):
      records.arrive(bytes)
      do throws(EchoRecords.TooLong) {
        while let record = try records.next() { take(record) }
      } catch {
        double.violate("noRecord", "a record longer than any of the protocol")
        leave()
      }
    case .finished: stream.close()
    case .closed: state = .over
    case .drained: break
    }
  }

  private func take(_ record: [UInt8]) {
    guard !isStalled && state != .over else { return }
    let payload = Array(record.dropFirst())
    let isBegun = state != .fresh && state != .greeted
    let request = Request(rawValue: record.first ?? 0)
    if request != .audio { double.note("> \(request.map { "\($0)" } ?? "a record of no kind")") }
    switch request {
    case .hello where state == .fresh && payload.first == 1:
      greet(String(decoding: payload.dropFirst(), as: UTF8.self))
    case .audio where isBegun: hear(payload)
    case .say where state == .listening: answer(saying: String(decoding: payload, as: UTF8.self))
    case .say where isBegun:
      if !crossings.take(.say) { double.violate("outOfOrder", "a text while \(state)") }
    case .over where isBegun:
      // Sent before the client knew that the user's voice had ended the reply, it is of no consequence.
      guard payload == [UInt8(truncatingIfNeeded: reply)], state != .listening else { return }
      crossings.clear()
      if state == .complete { double.change { $0.turns += 1 } } else { double.observer.interrupted?() }
      listen()
    case .bye:
      double.change { $0.stops += 1 }
      leave()
    default: double.violate("outOfOrder", "a record of kind \(record.first ?? 0) while \(state)")
    }
  }

  private func greet(_ key: String) {
    if let refusal = double.refusal(of: number, key: key) {
      return fail(refusal.status == 401 ? .key : .busy)
    }
    state = .greeted
    if misbehave(double.firstFault(at: .connecting)) { return }
    double.later(double.scenario.delay) { [self] in
      guard state == .greeted else { return }
      send(.welcome, Array("dialogue-\(number)".utf8))
      listen()
      _ = misbehave(double.firstFault(at: .listening))
    }
  }

  // MARK: The user's speech

  private func hear(_ bytes: [UInt8]) {
    double.noteReceived(bytes)
    if heard.count < Self.mostHeard { heard += bytes }
    if !isHearing { heard.removeFirst(max(0, heard.count - Self.preRoll)) }
    let result = ear.hear(bytes)
    double.note(result)
    for change in result.changes {
      switch (change, state) {
      case (.began, .listening), (.began, .responding), (.began, .complete):
        isHearing = true
        send(.speech, [1])
        if state != .listening {
          double.observer.interrupted?()
          listen()
        }
      case (.ended, .listening) where isHearing:
        send(.speech, [0])
        answer(saying: nil)
      case (.ended, _): isHearing = false
      case (.began, _): break
      }
    }
  }

  // MARK: Replies

  private func listen() { enter(.listening, code: 0) }

  private func enter(_ next: State, code: UInt8) {
    guard state != .over else { return }
    state = next
    double.note("< \(next)")
    send(.state, [code, UInt8(truncatingIfNeeded: reply)])
  }

  /// Answers with a text as speech, or with what was heard.
  private func answer(saying text: String?) {
    turn = double.nextTurn()
    reply = double.nextReply()
    let (number, words) = (reply, heard)
    isHearing = isHearing && text != nil
    if text == nil { crossings.expect([.say]) }
    enter(.thinking, code: 1)
    if misbehave(at: .thinking) { return }
    if let text, !double.scenario.isNumbered { turn.says = text }
    guard text != nil || double.scenario.isNumbered else {
      let echo = SpokenReply(pieces: [words], milliseconds: words.count / 2 * 1_000 / Self.rate)
      return double.later(turn.thinks) { [self] in respond(.success(echo), of: number) }
    }
    double.prepare(turn, number: number, format: .pcm, rate: Self.rate) { [self] in respond($0, of: number) }
  }

  private func respond(_ spoken: Result<SpokenReply?, SynthesisError>, of number: Int) {
    guard number == reply, state == .thinking else { return }
    guard case .success(let reply?) = spoken else {
      double.note("# \(spoken)")
      send(.failure, [Failure.reply.rawValue])
      return listen()
    }
    enter(.responding, code: 2)
    if misbehave(at: .responding) { return }
    let messages = reply.messages(chunk: double.scenario.chunk)
    play(
      ReplyMessages(messages, milliseconds: reply.milliseconds, speed: double.scenario.speed), of: number)
  }

  private func play(_ messages: ReplyMessages, of number: Int) {
    guard number == reply, state == .responding, !isStalled else { return }
    if messages.isHalfway && misbehave(at: .midway) { return }
    var messages = messages
    guard let (message, pause) = messages.next() else {
      if misbehave(at: .answered) { return }
      state = .complete
      return send(.complete)
    }
    double.noteSent(message, of: number)
    send(.audio, message)
    let rest = messages
    double.later(pause) { [self] in play(rest, of: number) }
  }

  // MARK: Sending

  private func send(_ kind: Kind, _ payload: [UInt8] = []) {
    guard !isStalled && state != .over else { return }
    if !stream.send(EchoRecords.bytes(of: [kind.rawValue] + payload)) { leave() }
  }

  private func beat() {
    guard !isStalled && state != .over else { return }
    send(.beat)
    double.later(Self.beat) { [self] in beat() }
  }

  private func leave() {
    state = .over
    stream.close()
  }

  private func fail(_ failure: Failure) {
    send(.failure, [failure.rawValue])
    leave()
  }

  private func misbehave(at place: ServiceFault.Place) -> Bool {
    misbehave(turn.fault?.place == place ? turn.fault : nil)
  }

  /// True when the connection or its turn does not continue.
  private func misbehave(_ fault: ServiceFault?) -> Bool {
    guard let fault else { return false }
    double.note("# \(fault.kind.rawValue)")
    switch fault.kind {
    // Scenarios with the last two are refused.
    case .hold, .repeated, .outOfOrder: break
    case .stall: isStalled = true
    case .drop, .expire:
      if fault.kind == .expire { double.expireKeys() }
      state = .over
      stream.cancel()
    case .oversized: _ = stream.send([0xFF, 0xFF, 0xFF, 0xFF])
    case .error:
      send(.failure, [Failure.reply.rawValue])
      listen()
    case .fail: fail(.service)
    case .kick:
      send(.goodbye)
      leave()
    case .malformed:
      send(.complete, Array(ServiceFault.userText.utf8))
      return false
    case .unknown:
      let words = Array(ServiceFault.userText.utf8)
      _ = stream.send(EchoRecords.bytes(of: [0x7F] + words))
      double.noteUnknown(["kind": 0x7F, "payload": .string(Base64.encode(words))])
      return false
    }
    return true
  }
}
