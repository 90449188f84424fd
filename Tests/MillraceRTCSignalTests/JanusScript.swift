import MillraceDialog
import MillraceJSON
import MillraceNet

@testable import MillraceRTCSignal

extension Optional where Wrapped == JSONValue {
  /// The value as JSON; empty: there is none.
  var line: String { self?.text ?? "" }
}

/// Descriptions for tests of Janus.
enum JanusTexts {
  /// An offer with sound in a direction, seen from its writer.
  static func sdp(_ direction: String = "sendonly", mid: String = "a0") -> String {
    """
    v=0\r
    o=- 1 1 IN IP4 127.0.0.1\r
    s=-\r
    t=0 0\r
    m=audio 9 UDP/TLS/RTP/SAVPF 111\r
    c=IN IP4 0.0.0.0\r
    a=mid:\(mid)\r
    a=\(direction)\r
    a=rtpmap:111 opus/48000/2\r

    """
  }

  static func settings(_ plugin: JanusPluginName, _ url: String = "ws://127.0.0.1:8188") throws
    -> JanusSettings
  {
    var media = SignalMedia()
    switch plugin {
    case .echotest, .audiobridge, .videoroom: media.audio = .sendReceive
    case .streaming: media.audio = .receiveOnly
    case .textroom: media.hasData = true
    }
    var settings = JanusSettings(url: try WebAddress(url), plugin: plugin, media: media)
    settings.room = .number(1_234)
    settings.stream = .number(1)
    settings.proxy = .direct
    return settings
  }

  /// An event in one line.
  static func words(_ event: SignalEvent) -> String {
    switch event {
    case .wantsOffer(let id, let media, _): "wantsOffer \(id.number) \(media.audio.rawValue)"
    case .offer(let id, _, let media, let peer):
      "offer \(id.number) \(media.audio.rawValue)\(media.hasData ? " data" : "")\(peer.map { " of \($0)" } ?? "")"
    case .answer(let id, let sdp): "answer \(id.number) \(sdp)"
    case .candidate(let id, let text): "candidate \(id.number) \(text ?? "end")"
    case .sessionEnded(let id): "ended \(id.number)"
    case .slot(let mid, _, let peer): "slot \(mid) \(peer ?? "")"
    case .ready(let isComplete): isComplete ? "ready" : "ready for others"
    case .wantsKeyFrame: "wantsKeyFrame"
    case .data(let label, _, _, let peer): "data \(label) \(peer)"
    case .event(let event): event.json.text
    case .sessionFailed(let id, let error): "failed \(id.number) \(error.name ?? "") \(error.reaction.name)"
    case .closed(let error): "closed \(error.name ?? "") \(error.reaction.name)"
    }
  }
}

/// A machine that a test leads message by message, as Janus would. Handle 201 is that of session 0, 202 that of session 1, and so on.
struct JanusScript {
  var machine: JanusMachine
  /// In nanoseconds.
  var time: Int64 = 0
  /// Every request so far.
  var sent: [JanusRequest] = []
  /// Answers to commands, as `number text`.
  var answers: [String] = []
  /// Why the signalling was closed.
  var closed: DialogError?
  private var lastHandle = 200

  init(_ settings: JanusSettings) { machine = JanusMachine(settings) }

  /// Names of the requests so far: of plugins as `message join`.
  var requests: [String] { sent.map(Self.name) }

  static func name(_ request: JanusRequest) -> String {
    let kind = request.json["janus"]?.string ?? "?"
    return (request.json["body"]?["request"]?.string).map { "\(kind) \($0)" } ?? kind
  }

  /// The latest request with a name.
  func last(_ name: String) -> JanusRequest? { sent.last { Self.name($0) == name } }

  /// What it reports, as text.
  mutating func give(_ input: JanusMachine.Input, after milliseconds: Int = 0) -> [String] {
    time += Int64(milliseconds) * 1_000_000
    var words: [String] = []
    for step in machine.handle(input, at: time) {
      switch step {
      case .send(let request): sent.append(request)
      case .listen: break
      case .report(let event):
        if case .closed(let error) = event { closed = error }
        words.append(JanusTexts.words(event))
      case .answer(let number, let error): answers.append("\(number) \(error?.name ?? "ok")")
      case .close: words.append("close")
      }
    }
    return words
  }

  /// Gives a message in JSON.
  mutating func message(_ json: String) -> [String] {
    do throws(JanusMessageProblem) {
      return give(.message(try JanusMessage(parsing: Array(json.utf8))))
    } catch {
      return give(.invalid(error.text))
    }
  }

  /// Creates the session and attaches the first handle.
  mutating func start() -> [String] {
    give(.opened) + message(#"{"janus":"success","transaction":"m1","data":{"id":100}}"#) + attach()
  }

  /// Answers the latest `attach`.
  mutating func attach() -> [String] {
    guard let transaction = last("attach")?.json["transaction"]?.string else { return ["no attach"] }
    lastHandle += 1
    return message(
      #"{"janus":"success","session_id":100,"transaction":"\#(transaction)","data":{"id":\#(lastHandle)}}"#)
  }

  /// A message of the plugin that nothing asked for.
  mutating func event(_ data: String, handle: Int = 201) -> [String] {
    message(
      #"{"janus":"event","session_id":100,"sender":\#(handle),"plugindata":{"plugin":"p","data":\#(data)}}"#)
  }

  /// The answer to the latest request with a name.
  mutating func reply(_ data: String, to name: String, jsep: JanusDescription? = nil) -> [String] {
    guard let request = last(name), let transaction = request.json["transaction"]?.string else {
      return ["no \(name)"]
    }
    let description = jsep.map { #","jsep":\#($0.json.text)"# } ?? ""
    return message(
      #"{"janus":"event","session_id":100,"sender":\#(request.handle ?? 0),"transaction":"\#(transaction)","plugindata":{"data":\#(data)}\#(description)}"#
    )
  }

  /// A message about a handle's connection.
  mutating func connection(_ kind: String, handle: Int = 201, _ more: String = "") -> [String] {
    message(#"{"janus":"\#(kind)","session_id":100,"sender":\#(handle)\#(more)}"#)
  }
}
