import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRTC
import MillraceRTCSignal
import MillraceRTCWire
import Synchronization
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

/// Signalling in memory: one side that calls, or several, and one that answers. Reports come on a network thread, as those of real forms do.
final class MemorySwitch: Sendable {
  private struct State {
    var server: MemorySignalling?
    var callers: [Int: MemorySignalling] = [:]
    var next = 0
  }

  private let state = Locked(State())

  /// The side that answers; as a server it outlives its sessions.
  func answering(isServer: Bool) -> MemorySignalling {
    let end = MemorySignalling(self, nil, SignalTraits(isTrickle: true, isServer: isServer))
    state.withLock { $0.server = end }
    return end
  }

  /// A side that offers these media.
  func calling(_ media: SignalMedia) -> MemorySignalling {
    state.withLock { state in
      let end = MemorySignalling(self, (state.next, media), SignalTraits(isTrickle: true))
      state.callers[state.next] = end
      state.next += 1
      return end
    }
  }

  fileprivate func server() -> MemorySignalling? { state.withLock { $0.server } }
  fileprivate func caller(_ number: Int) -> MemorySignalling? { state.withLock { $0.callers[number] } }
}

/// One side of a `MemorySwitch`.
final class MemorySignalling: Signalling {
  struct Log: Sendable {
    var described = 0
    var connected: [SignalSessionID] = []
    var ended: [SignalSessionID] = []
    /// Later offers that were refused.
    var refused: [RTCError] = []
    var isOver = false
    var commands: [DialogCommand] = []
    /// Messages that it was asked to send.
    var messages = 0
  }

  private struct State {
    var report: (@Sendable (SignalEvent) -> Void)?
    /// What came before it began.
    var waiting: [SignalEvent] = []
    var isOver = false
  }

  let traits: SignalTraits
  let log = Locked(Log())
  /// Answers commands of this name; nil: none.
  let answers = Locked<(name: String, error: DialogError?)?>(nil)
  /// True: what is asked to end does not, before `releaseEnd`.
  let holdsEnd = Locked(false)
  let heldEnds = Locked<[@Sendable () -> Void]>([])
  private let exchange: MemorySwitch
  private let offer: (number: Int, media: SignalMedia)?
  private let state = Locked(State())

  fileprivate init(
    _ exchange: MemorySwitch, _ offer: (number: Int, media: SignalMedia)?, _ traits: SignalTraits
  ) {
    self.exchange = exchange
    self.offer = offer
    self.traits = traits
  }

  func report(_ event: SignalEvent) {
    NetLoop.shared.run { [self] in
      let report = state.withLock { state in
        if state.report == nil { state.waiting.append(event) }
        return state.isOver ? nil : state.report
      }
      report?(event)
    }
  }

  func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    let waiting = state.withLock { state in
      state.report = report
      defer { state.waiting = [] }
      return state.waiting
    }
    for event in waiting { self.report(event) }
    if let offer { self.report(.wantsOffer(SignalSessionID(0), offer.media, servers: [])) }
  }

  func describe(_ session: SignalSessionID, sdp: String) {
    log.withLock { $0.described += 1 }
    if let offer {
      let media = SignalMedia(
        audio: offer.media.audio.reversed, video: offer.media.video.reversed, hasData: offer.media.hasData)
      exchange.server()?.report(.offer(SignalSessionID(offer.number), sdp: sdp, media, peer: nil))
    } else {
      exchange.caller(session.number)?.report(.answer(SignalSessionID(0), sdp: sdp))
    }
  }

  func add(_ candidate: String?, to session: SignalSessionID) {
    if let offer {
      exchange.server()?.report(.candidate(SignalSessionID(offer.number), candidate))
    } else {
      exchange.caller(session.number)?.report(.candidate(SignalSessionID(0), candidate))
    }
  }

  func connected(_ session: SignalSessionID) { log.withLock { $0.connected.append(session) } }

  func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    log.withLock { $0.refused.append(error) }
  }

  func end(_ session: SignalSessionID) { log.withLock { $0.ended.append(session) } }

  func perform(_ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void) -> Bool {
    log.withLock { $0.commands.append(command) }
    guard let answer = answers.withLock({ $0 }), answer.name == command.name else { return false }
    NetLoop.shared.run { done(answer.error) }
    return true
  }

  func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    log.withLock { $0.messages += 1 }
    return .unsupported
  }

  func end(_ done: @escaping @Sendable () -> Void) {
    state.withLock { $0.isOver = true }
    if holdsEnd.withLock({ $0 }) {
      heldEnds.withLock { $0.append(done) }
      return
    }
    NetLoop.shared.run { [self] in
      log.withLock { $0.isOver = true }
      done()
    }
  }

  /// What was asked to end has ended.
  func releaseEnd() {
    let held = heldEnds.withLock { $0 }
    NetLoop.shared.run { for done in held { done() } }
  }
}

/// A call, and the place of its node: writes what is sent, and reads what comes. One thread.
final class CallBench {
  let exchange: RTCExchange
  let call: RTCCall
  let end: MemorySignalling
  private(set) var events: [(name: String, members: [String: JSONValue])] = []
  private(set) var sounds: [(head: SoundDownHead, payload: [UInt8])] = []
  private(set) var soundEnds = 0
  private(set) var pictures: [(head: PictureDownHead, bytes: [UInt8])] = []
  private(set) var messages: [(kind: UInt8, bytes: [UInt8])] = []

  static func settings(_ sections: [MediaSection]) -> RTCCallSettings {
    var settings = RTCCallSettings()
    settings.session.sections = sections
    settings.session.ice.addresses = ["127.0.0.1"]
    // Machines of tests are slow.
    settings.signal = .milliseconds(60_000)
    settings.session.connect = .milliseconds(60_000)
    settings.media = 0
    settings.interruption = .milliseconds(60_000)
    settings.stats = .milliseconds(50)
    settings.hasDataPorts = true
    return settings
  }

  init(
    _ end: MemorySignalling, on loop: RTCLoop, _ sections: [MediaSection],
    _ change: (inout RTCCallSettings) -> Void = { _ in }
  ) {
    self.end = end
    var settings = Self.settings(sections)
    change(&settings)
    exchange = RTCExchange(
      RTCExchange.Use(
        sendsSound: true, hearsSound: true, sendsPictures: true, seesPictures: true, hasData: true),
      events: settings.eventBytes, waker: .none)
    call = RTCCall(exchange, settings, on: loop) { _ in .success(end) }
  }

  // MARK: Sending

  func send(sound payload: [UInt8], codec: SoundCodec = .opus, level: UInt8 = 20) {
    let head = SoundUpHead(codec: codec.packed, duration: 960, pause: 0, level: level, isVoice: true)
    exchange.soundUp.put(MediaRecord.sound, count: SoundUpHead.byteCount + payload.count) { target in
      head.store(to: target)
      for index in payload.indices { target[SoundUpHead.byteCount + index] = payload[index] }
    }
    exchange.wakeSessions()
  }

  func send(picture bytes: [UInt8], codec: PictureCodec, isKey: Bool) {
    let head = PictureUpHead(timestamp: Clock(.realtime).now, isKey: isKey, codec: codec.rawValue)
    exchange.pictureUp.put(MediaRecord.picture, count: PictureUpHead.byteCount + bytes.count) { target in
      head.store(to: target)
      for index in bytes.indices { target[PictureUpHead.byteCount + index] = bytes[index] }
    }
    exchange.wakeSessions()
  }

  func send(message text: String) {
    Self.put(Array(text.utf8), MediaRecord.text, exchange.dataUp)
    exchange.wakeSessions()
  }

  /// Leaves commands, all of them before the call looks.
  func command(_ json: String...) {
    for text in json { Self.put(Array(text.utf8), MediaRecord.command, exchange.commands) }
    exchange.wakeSessions()
  }

  static func put(_ bytes: [UInt8], _ kind: UInt8, _ queue: ByteQueue) {
    queue.put(kind, count: bytes.count) { target in
      for index in bytes.indices { target[index] = bytes[index] }
    }
  }

  // MARK: Reading

  /// Takes everything that has come.
  func read() {
    while let record = exchange.events.peek() {
      if let event = Self.event(Array(record.bytes)) { events.append(event) }
      exchange.events.drop(record)
    }
    while let record = exchange.soundDown.peek() {
      if let head = SoundDownHead.load(record.bytes) {
        if record.kind == MediaRecord.soundEnd {
          soundEnds += 1
        } else {
          sounds.append((head, Array(record.bytes.dropFirst(SoundDownHead.byteCount))))
        }
      }
      exchange.soundDown.drop(record)
    }
    while let record = exchange.pictureDown.peek() {
      if record.kind == MediaRecord.picture, let head = PictureDownHead.load(record.bytes) {
        pictures.append((head, Array(record.bytes.dropFirst(PictureDownHead.byteCount))))
      }
      exchange.pictureDown.drop(record)
    }
    while let record = exchange.dataDown.peek() {
      messages.append((record.kind, Array(record.bytes)))
      exchange.dataDown.drop(record)
    }
  }

  /// The form is that of `EventRecord`.
  static func event(_ record: [UInt8]) -> (name: String, members: [String: JSONValue])? {
    guard let index = record.first, Int(index) < DialogEvent.contracts.count else { return nil }
    var members: [String: JSONValue] = [:]
    var place = 1
    while place < record.count {
      let start = place + 1 + Int(record[place])
      let name = String(decoding: record[place + 1..<start], as: UTF8.self)
      let count = (0..<4).reduce(0) { $0 | Int(record[start + $1]) << (8 * $1) }
      members[name] = try? JSONValue(parsing: Array(record[start + 4..<start + 4 + count]))
      place = start + 4 + count
    }
    return (DialogEvent.contracts[Int(index)].name, members)
  }

  var states: [String] { events.filter { $0.name == "state" }.compactMap { $0.members["state"]?.string } }
  var errors: [String] { events.filter { $0.name == "error" }.compactMap { $0.members["name"]?.string } }
  var isUp: Bool { exchange.takers.load(ordering: .acquiring) > 0 }

  func answer(_ id: String) -> [String: JSONValue]? {
    events.first { $0.name == "answer" && $0.members["id"]?.string == id }?.members
  }

  func has(_ name: String, _ member: String, _ value: String) -> Bool {
    events.contains { $0.name == name && $0.members[member]?.string == value }
  }
}

/// Waits for what several benches have, reading them meanwhile.
func untilCalls(_ benches: CallBench..., condition: () -> Bool) async throws {
  while true {
    for bench in benches { bench.read() }
    if condition() {
      // What was there when the condition was met.
      for bench in benches { bench.read() }
      return
    }
    try await Task.sleep(for: .milliseconds(2))
  }
}
