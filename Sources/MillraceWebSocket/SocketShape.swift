internal import MillraceCore
internal import MillraceNet

/// What `net.websocket` will carry, and what it objects to.
enum SocketShape {
  /// Length of a packet of sound that comes.
  private static let frame: Nanoseconds = 20_000_000
  /// Bytes of a packet of coded sound that may be cut anywhere.
  private static let pieceBytes = 4_096

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("url") == parameters.has("listen") {
      resolution.refuse(
        nil, parameters.has("url") ? "it cannot both connect and wait" : "nothing tells where to connect",
        cure: "give either \"url\" or \"listen\"")
    }
    checkAddress(&resolution)
    checkServer(&resolution)
    checkDoor(&resolution)
    let linked = resolution.linkedInputs
    if parameters.string("framing") == "raw" && linked.contains("audio") && linked.contains("image") {
      resolution.refuse(
        "framing", "the other side cannot tell sound from pictures", cure: "set \"framing\" to \"tagged\"")
    }
    for text in parameters.strings("headers") {
      if !text.contains(":") {
        resolution.refuse("headers", "a header has no colon", cure: "write \"Name: value\"")
      } else if text.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
        resolution.refuse(
          "headers", "a header holds a line break or another control character",
          cure: "take it out; key files often end with one")
      }
    }
    let largest = parameters.integer("largest")
    for name in linked where (resolution.inputs[name]?.packetBytes ?? 0) >= largest {
      resolution.refuse(
        "largest", "a packet of \"\(name)\" may be larger", cure: "raise it above the packet's size")
    }
    // A bot's replies come faster than they are spoken, and are held back without loss; somebody's voice is worth nothing when it is old.
    resolution.pacing = parameters.bool("replies") ? .waits : .live
    resolution.outputs["audio"] = sound(parameters)
    let wantsEvents = resolution.wanted["text"] != nil && !resolution.isWanted(.text, at: "text")
    resolution.outputs["text"] = OutputShape(
      wantsEvents ? .event : .text, packetDuration: nil, packetBytes: largest, burst: 0)
  }

  /// What means something on one side only.
  private static func checkServer(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("certificate") != parameters.has("key") {
      resolution.refuse(
        parameters.has("key") ? "key" : "certificate", "a certificate and its key go together",
        cure: "give both, or neither")
    }
    if !parameters.has("listen") && parameters.has("certificate") {
      resolution.refuse(
        "certificate", "only a server has one", cure: "\"roots\" names those to believe when connecting")
    }
    if parameters.has("listen") && !parameters.strings("headers").isEmpty {
      resolution.refuse("headers", "nobody is sent them", cure: "they go with \"url\"")
    }
  }

  /// Who is let in.
  private static func checkDoor(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    guard parameters.has("listen") else {
      for name in ["origins", "hosts"] where !parameters.strings(name).isEmpty {
        resolution.refuse(name, "only a server has visitors", cure: "it goes with \"listen\"")
      }
      if parameters.has("token") {
        resolution.refuse(
          "token", "only a server asks for one", cure: "send it in \"headers\": \"Authorization: Bearer ...\""
        )
      }
      return
    }
    let door = NetWebSocket.door(parameters)
    if let problem = door.problem {
      resolution.refuse(nil, problem.text)
    } else if door.problem(
      listeningAt: parameters.string("host"), hasTLS: parameters.has("certificate")) != nil
    {
      resolution.refuse(
        "host", "other machines could reach \"\(parameters.string("host"))\" without TLS",
        cure: "give \"certificate\" and \"key\", or set \"plain\" to true where a proxy speaks TLS")
    }
  }

  private static func checkAddress(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("url") {
      do throws(NetProblem) {
        let address = try WebAddress(parameters.string("url"))
        if address.scheme != .ws && address.scheme != .wss {
          resolution.refuse("url", "a WebSocket's address begins with ws: or wss:")
        }
        if !parameters.bool("verify") && !address.isLoopback {
          resolution.refuse(
            "verify", "a certificate has to be verified unless the host is this machine",
            cure: "leave it out; \"roots\" names an authority of your own")
        }
        if !parameters.bool("plain"), let problem = NetWebSocket.plainProblem(parameters, address) {
          resolution.refuse(
            "url", problem, cure: "begin it with wss:, or set \"plain\" to true")
        }
      } catch {
        resolution.refuse("url", error.text)
      }
    }
    let proxy = parameters.string("proxy")
    if proxy != "environment" && proxy != "none" {
      do throws(NetProblem) { _ = try NetProxy.Place(proxy) } catch { resolution.refuse("proxy", error.text) }
    }
  }

  /// Room is asked for by the node, packet by packet: what comes and is not taken must not hold up what is sent.
  private static func sound(_ parameters: ParameterValues) -> OutputShape {
    let rate = parameters.integer("rate")
    let channels = parameters.integer("channels")
    switch parameters.string("format") {
    case "opus":
      return OutputShape(
        .opus(rate: rate, channels: channels), packetDuration: frame, packetBytes: pieceBytes, burst: 0)
    case "mp3": return OutputShape(.mp3, packetDuration: nil, packetBytes: pieceBytes, burst: 0)
    case "ogg": return OutputShape(.ogg, packetDuration: nil, packetBytes: pieceBytes, burst: 0)
    case "aac": return OutputShape(.aac, packetDuration: nil, packetBytes: pieceBytes, burst: 0)
    default: return .pcm(rate: rate, channels: channels, sample: .s16, frames: rate / 50, burst: 0)
    }
  }
}
