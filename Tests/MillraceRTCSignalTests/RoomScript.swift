import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRoomWire

@testable import MillraceRTCSignal

/// Names, settings and descriptions for tests of rooms.
enum RoomTexts {
  static func name(_ text: String) -> RoomName {
    guard let name = RoomName(text) else { fatalError("no name: \(text)") }
    return name
  }

  static let token = "hush-token-7"

  static func settings(
    _ media: SignalMedia = SignalMedia(audio: .sendReceive), url: String = "ws://127.0.0.1:8080/room"
  ) throws -> RoomClientSettings {
    var settings = RoomClientSettings(url: try WebAddress(url), user: "ann", room: "r1", media: media)
    settings.name = "Ann"
    settings.token = token
    settings.proxy = .direct
    return settings
  }

  /// A description with a certificate of this byte, 32 times.
  static func sdp(_ byte: String = "AA", mid: String = "m0", session: Int = 1) -> String {
    let digest = [String](repeating: byte, count: 32).joined(separator: ":")
    return """
      v=0\r
      o=- \(session) 1 IN IP4 127.0.0.1\r
      s=-\r
      t=0 0\r
      a=fingerprint:sha-256 \(digest)\r
      m=audio 9 UDP/TLS/RTP/SAVPF 111\r
      c=IN IP4 0.0.0.0\r
      a=mid:\(mid)\r
      a=sendrecv\r
      a=rtpmap:111 opus/48000/2\r

      """
  }

  static func member(
    _ peer: String, user: String = "bob", _ tracks: Set<RoomTrack> = [], role: RoomRole = .host,
    isMuted: Bool = false
  ) -> RoomMember {
    RoomMember(
      name(peer), user: name(user), name: "Bob", role: role, tracks: tracks, isMuted: isMuted)
  }

  /// An event in one line.
  static func words(_ event: SignalEvent) -> String {
    switch event {
    case .wantsOffer(let id, let media, let servers):
      [
        "wantsOffer \(id.number) \(media.audio.rawValue)+\(media.audioSlots)",
        "\(media.video.rawValue)+\(media.videoSlots) \(servers.map(\.url))",
      ].joined(separator: " ")
    case .offer(let id, _, let media, let peer): "offer \(id.number) \(media.audio.rawValue) of \(peer ?? "")"
    case .answer(let id, _): "answer \(id.number)"
    case .candidate(let id, let text): "candidate \(id.number) \(text ?? "end")"
    case .sessionEnded(let id): "ended \(id.number)"
    case .event(let event): event.json.text
    case .slot(let mid, let track, let peer): "slot \(mid) \(track.rawValue) \(peer ?? "nobody")"
    case .ready(let isComplete): isComplete ? "ready" : "ready for others"
    case .wantsKeyFrame: "wantsKeyFrame"
    case .data(let label, let bytes, let isText, let peer):
      "data \(label) \(bytes.count) \(isText ? "text" : "bytes") from \(peer)"
    case .sessionFailed(let id, let error): "failed \(id.number) \(error.name ?? "") \(error.reaction.name)"
    case .closed(let error): "closed \(error.name ?? "") \(error.reaction.name)"
    }
  }
}

/// A machine that a test leads message by message, as a hub would: bytes both ways.
struct RoomScript {
  var machine: RoomMachine
  var time: Int64 = 0
  /// Every request so far, read as a hub reads them.
  var sent: [RoomRequest] = []
  /// Answers to commands, as `number error`.
  var answers: [String] = []
  /// Why the signalling was closed.
  var closed: DialogError?
  /// Everything that was reported or said about an error.
  var texts: [String] = []
  private var sequence = RoomSequence()

  init(_ settings: RoomClientSettings) {
    machine = RoomMachine(settings, RoomHubSession(settings))
  }

  init(_ settings: RoomClientSettings, with choice: RoomPeerChoice) {
    machine = RoomMachine(settings, RoomPeerSession(choice, settings.media))
  }

  /// Operations of the requests so far.
  var operations: [String] { sent.map(\.operation.name) }

  /// The payloads of the requests with a name.
  func payloads(_ name: String) -> [String] {
    sent.filter { $0.operation.name == name }.map(\.operation.payload.text)
  }

  /// Gives an input; returns what is reported, as text.
  @discardableResult
  mutating func give(_ input: RoomMachine.Input, after milliseconds: Int = 0) -> [String] {
    time += Int64(milliseconds) * 1_000_000
    var words: [String] = []
    for step in machine.handle(input, at: time) {
      switch step {
      case .send(let bytes): read(bytes)
      case .report(let event):
        if case .closed(let error) = event { closed = error }
        texts.append("\(event)")
        words.append(RoomTexts.words(event))
      case .answer(let number, let error):
        texts.append("\(String(describing: error))")
        answers.append("\(number) \(error?.name ?? "ok")")
      case .close: words.append("close")
      }
    }
    return words
  }

  private mutating func read(_ bytes: [UInt8]) {
    do {
      let request = try RoomRequest(parsing: bytes)
      try sequence.take(request.id)
      sent.append(request)
    } catch {
      texts.append("not a request: \(error)")
    }
  }

  /// Gives a text frame as it is.
  @discardableResult
  mutating func message(_ text: String) -> [String] { give(.message(Array(text.utf8))) }

  @discardableResult
  mutating func push(_ push: RoomPush) -> [String] { give(.message(push.bytes)) }

  /// Answers the latest request with a name: done, with a payload, or refused.
  @discardableResult
  mutating func done(_ name: String) -> [String] {
    give(.message(RoomAnswer(last(name)).bytes))
  }

  @discardableResult
  mutating func done(_ name: String, _ payload: some RoomPayload) -> [String] {
    give(.message(RoomAnswer(last(name), payload).bytes))
  }

  @discardableResult
  mutating func refuse(_ name: String, _ error: RoomErrorName, _ text: String = "no", after wait: Int? = nil)
    -> [String]
  {
    give(.message(RoomAnswer(last(name), RoomError(error, text, afterMilliseconds: wait)).bytes))
  }

  func last(_ name: String) -> Int { sent.last { $0.operation.name == name }?.id ?? 0 }

  /// Logs in and joins.
  @discardableResult
  mutating func join(
    _ peers: [RoomMember] = [], media: RoomMediaMode? = .forward, as me: String = "me",
    room: String = "r1", role: RoomRole = .host,
    rights: Set<RoomRight> = [.publish, .kick, .close]
  ) -> [String] {
    give(.opened)
    done("login", RoomLoggedIn(RoomTexts.name("ann")))
    return done(
      "join",
      RoomJoined(
        RoomTexts.name(me), room: RoomTexts.name(room), role: role, rights: rights, peers: peers,
        media: media,
        servers: [RoomServer("stun:127.0.0.1:3478")]))
  }
}
