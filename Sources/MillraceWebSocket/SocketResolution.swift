internal import MillraceCore
internal import MillraceNet

/// Checks the parameters of `net.websocket` and resolves its formats.
enum SocketResolution {
  /// Duration of a packet of received audio.
  private static let frame: Nanoseconds = 20_000_000
  /// Bytes of a packet of an encoded stream that may be cut anywhere.
  private static let pieceBytes = 4_096

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("url") == parameters.has("listen") {
      resolution.refuse(
        nil,
        parameters.has("url") ? "it cannot both connect and listen" : "neither an address nor a port is set",
        cure: "set either \"url\" or \"listen\"")
    }
    checkAddress(&resolution)
    checkServer(&resolution)
    checkAdmission(&resolution)
    let linked = resolution.linkedInputs
    if parameters.string("framing") == "raw" && linked.contains("audio") && linked.contains("image") {
      resolution.refuse(
        "framing", "raw frames do not distinguish audio from images", cure: "set \"framing\" to \"tagged\"")
    }
    for text in parameters.strings("headers") {
      if !text.contains(":") {
        resolution.refuse("headers", "a header has no colon", cure: "write it as \"Name: value\"")
      } else if text.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
        resolution.refuse(
          "headers", "a header contains a line break or another control character",
          cure: "remove it; key files often end with a line break")
      }
    }
    let largest = parameters.integer("largest")
    for name in linked where (resolution.inputs[name]?.packetBytes ?? 0) >= largest {
      resolution.refuse(
        "largest", "packets of \"\(name)\" may be larger", cure: "raise it above the packet size")
    }
    // A bot's replies arrive faster than real time and may wait; live speech is worthless when it is late.
    resolution.pacing = parameters.bool("replies") ? .waits : .live
    resolution.outputs["audio"] = sound(parameters)
    let wantsEvents = resolution.wanted["text"] != nil && !resolution.isWanted(.text, at: "text")
    resolution.outputs["text"] = OutputShape(
      wantsEvents ? .event : .text, packetDuration: nil, packetBytes: largest, burst: 0)
  }

  /// Parameters that apply to one side only.
  private static func checkServer(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("certificate") != parameters.has("key") {
      resolution.refuse(
        parameters.has("key") ? "key" : "certificate",
        "a certificate needs its key, and a key its certificate",
        cure: "set both, or neither")
    }
    if !parameters.has("listen") && parameters.has("certificate") {
      resolution.refuse(
        "certificate", "only a server has one", cure: "to trust an authority when connecting, use \"roots\"")
    }
    if parameters.has("listen") && !parameters.strings("headers").isEmpty {
      resolution.refuse("headers", "a server does not send any", cure: "use them with \"url\"")
    }
  }

  /// Parameters of the admission rules.
  private static func checkAdmission(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    guard parameters.has("listen") else {
      for name in ["origins", "hosts"] where !parameters.strings(name).isEmpty {
        resolution.refuse(name, "it applies only to a server", cure: "use it with \"listen\"")
      }
      if parameters.has("token") {
        resolution.refuse(
          "token", "only a server requires one", cure: "send it in \"headers\": \"Authorization: Bearer ...\""
        )
      }
      return
    }
    let admission = NetWebSocket.admission(parameters)
    if let problem = admission.problem {
      resolution.refuse(nil, problem.text)
    } else if admission.problem(
      listeningAt: parameters.string("host"), hasTLS: parameters.has("certificate")) != nil
    {
      resolution.refuse(
        "host", "other machines could reach \"\(parameters.string("host"))\" without TLS",
        cure: "set \"certificate\" and \"key\", or set \"plain\" to true behind a proxy that terminates TLS")
    }
  }

  private static func checkAddress(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("url") {
      do throws(NetError) {
        let address = try WebAddress(parameters.string("url"))
        if address.scheme != .ws && address.scheme != .wss {
          resolution.refuse("url", "a WebSocket address must begin with ws: or wss:")
        }
        if !parameters.bool("verify") && !address.isLoopback {
          resolution.refuse(
            "verify", "verification may be disabled only for this machine",
            cure: "remove it; \"roots\" sets a certificate authority of your own")
        }
        if !parameters.bool("plain"), let problem = NetWebSocket.plainProblem(parameters, address) {
          resolution.refuse(
            "url", problem, cure: "use wss:, or set \"plain\" to true")
        }
      } catch {
        resolution.refuse("url", error.text)
      }
    }
    let proxy = parameters.string("proxy")
    if proxy != "environment" && proxy != "none" {
      do throws(NetError) { _ = try NetProxy.Server(proxy) } catch { resolution.refuse("proxy", error.text) }
    }
  }

  /// The node requests room packet by packet (burst 0): a full output must not delay what is sent.
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
