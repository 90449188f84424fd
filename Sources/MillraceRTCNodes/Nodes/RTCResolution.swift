internal import MillraceCore
internal import MillraceNet
internal import MillraceRTC
internal import MillraceService

/// Checks what the nodes of WebRTC and RTP have in common, and derives the shapes of their outputs.
enum RTCResolution {
  /// Bytes of the largest packet of Opus: what a datagram on Ethernet carries.
  static let opusBytes = 1_500
  /// Milliseconds of a packet of received sound.
  static let frame = 10
  /// Lengths of packets of sound in milliseconds that every codec here has.
  private static let packetTimes = [10, 20, 40, 60]

  /// What a node sends and receives, seen from this side.
  struct Directions {
    var sends: Bool
    var receives: Bool
    /// What to do to have the other direction, too.
    var cure: String
  }

  /// The shapes of the outputs that a node of the family has.
  static func resolveOutputs(_ resolution: inout Resolution, hasData: Bool = true) {
    let parameters = resolution.parameters
    resolution.pacing = .live
    resolution.latency = .milliseconds(Int64(parameters.integer("ptime")))
    resolution.outputs["audio"] = sound(resolution)
    resolution.outputs["video"] = OutputShape(
      videoFormat(parameters, resolution.inputs["video"]), packetDuration: nil,
      packetBytes: RTCExchange.pictureBytes, burst: 0)
    if hasData {
      resolution.outputs["data"] = OutputShape(
        .text, packetDuration: nil, packetBytes: parameters.integer("largest"), burst: 0)
      // Only then do the ports have a channel.
      if resolution.linkedInputs.contains("data") || resolution.wanted["data"]?.isEmpty == false {
        resolution.reservedNames[parameters.string("dataLabel")] = "for its ports \"data\""
      }
    }
    // Time, node and name precede the members.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: parameters.integer("eventBytes") + 256)
  }

  /// The node asks for room packet by packet (burst 0): a full output must not delay what is sent.
  private static func sound(_ resolution: Resolution) -> OutputShape {
    let parameters = resolution.parameters
    let (rate, channels) = (parameters.integer("rate"), parameters.integer("channels"))
    if parameters.string("format") == "opus" {
      return OutputShape(
        .opus(rate: 48_000, channels: channels), packetDuration: nil, packetBytes: opusBytes, burst: 0)
    }
    let isFloat = resolution.isWanted(.pcm(rate: rate, channels: channels, sample: .f32), at: "audio")
    let isShort = resolution.isWanted(.pcm(rate: rate, channels: channels, sample: .s16), at: "audio")
    return .pcm(
      rate: rate, channels: channels, sample: isShort && !isFloat ? .s16 : .f32,
      frames: rate * frame / 1_000, burst: 0)
  }

  /// The format of encoded pictures: as the parameter says, or as they arrive at the input.
  static func videoFormat(_ parameters: ParameterValues, _ input: OutputShape?) -> Format {
    if parameters.has("videoCodec") { return parameters.string("videoCodec") == "vp8" ? .vp8 : .h264 }
    return input?.format.kind == .vp8 ? .vp8 : .h264
  }

  /// Checks what every session has.
  static func checkSession(_ resolution: inout Resolution) {
    checkSound(&resolution)
    checkCodecs(&resolution)
    checkPictures(&resolution)
    checkICE(&resolution)
    checkReconnection(&resolution)
  }

  private static func checkReconnection(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    guard let first = parameters["first"]?.asNumber, let most = parameters["most"]?.asNumber, first > most
    else { return }
    resolution.refuse(
      "first", "\"first\" is \(text(first)) ms and \"most\" \(text(most)) ms",
      cure: "set the first delay at most as long as the longest")
  }

  /// Whole numbers without a fraction.
  private static func text(_ number: Double) -> String {
    Int(exactly: number).map { "\($0)" } ?? "\(number)"
  }

  // MARK: Media

  /// Checks that what is linked can be sent and received.
  static func checkLinks(_ resolution: inout Resolution, _ directions: Directions) {
    for name in ["audio", "video"] {
      if resolution.linkedInputs.contains(name) && !directions.sends {
        resolution.refuse(nil, "the input \"\(name)\" is linked, and nothing is sent", cure: directions.cure)
      }
      if resolution.wanted[name]?.isEmpty == false && !directions.receives {
        resolution.refuse(
          nil, "the output \"\(name)\" is linked, and nothing is received", cure: directions.cure)
      }
    }
  }

  /// Checks the parameters of sound.
  static func checkSound(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let ptime = parameters.integer("ptime")
    if !packetTimes.contains(ptime) {
      resolution.refuse(
        "ptime", "packets of \(ptime) ms are not possible with every codec", cure: "set 10, 20, 40 or 60")
    }
    let rate = parameters.integer("rate")
    if rate % 100 != 0 {
      resolution.refuse(
        "rate", "10 ms at \(rate) Hz are no whole number of samples", cure: "set a multiple of 100 Hz")
    }
    let (least, most) = (parameters.integer("jitterLeast"), parameters.integer("jitterMost"))
    if least > most {
      resolution.refuse(
        "jitterLeast", "\"jitterLeast\" is \(least) ms and \"jitterMost\" \(most) ms",
        cure: "set the least below the most")
    }
  }

  /// Checks the codecs of sound against what is linked.
  static func checkCodecs(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    // Without the parameter there is Opus only.
    guard parameters.has("codecs") else { return }
    let codecs = parameters.strings("codecs")
    if Set(codecs).count != codecs.count {
      resolution.refuse("codecs", "a codec is listed twice", cure: "list each once")
    }
    guard !codecs.contains("opus") else { return }
    if resolution.inputs["audio"]?.format.kind == .opus {
      resolution.refuse(
        "codecs", "the input \"audio\" carries Opus, and Opus is not among the codecs",
        cure: "add \"opus\", or link PCM")
    }
    if parameters.string("format") == "opus" {
      resolution.refuse(
        "format", "Opus is to be received, and it is not among the codecs",
        cure: "add \"opus\" to \"codecs\", or set \"format\" to \"pcm\"")
    }
  }

  /// Checks that the codec of pictures is that of the link.
  static func checkPictures(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    guard parameters.has("videoCodec"), let input = resolution.inputs["video"] else { return }
    let codec = parameters.string("videoCodec")
    guard input.format.kind.rawValue != codec else { return }
    resolution.refuse(
      "videoCodec", "the input \"video\" carries \(input.format), and \"videoCodec\" is \(codec)",
      cure: "leave the parameter out, or encode with this codec")
  }

  // MARK: Network

  /// Checks the parameters of ICE.
  static func checkICE(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let ports = parameters["ports"]?.integers ?? []
    if ports.count == 1 {
      resolution.refuse(
        "ports", "it must be the first and the last port, and has \(ports[0]) only",
        cure: "write [\(ports[0]), \(min(ports[0] + 100, 65_535))]")
    } else if ports.count == 2, ports[0] > ports[1] {
      resolution.refuse(
        "ports", "the first port, \(ports[0]), is above the last, \(ports[1])",
        cure: "write [\(ports[1]), \(ports[0])]")
    }
    for problem in RTCCallParameters.serverProblems(parameters) {
      resolution.refuse(problem.parameter, problem.text, cure: problem.cure)
    }
    for text in parameters.strings("interfaces") where DatagramAddress(host: text, port: 0) == nil {
      resolution.refuse(
        "interfaces", "\"\(text)\" is no IP address",
        cure: "write an address of this machine, such as 192.0.2.1")
    }
    if parameters.string("policy") == "relay" && !parameters.strings("servers").contains(where: isTURN) {
      resolution.refuse(
        "policy", "everything is to go through a TURN server, and there is none",
        cure: "add \"turn:host:port\" to \"servers\"")
    }
    if parameters.bool("lite") && !parameters.strings("servers").isEmpty {
      resolution.refuse(
        "lite", "ICE lite uses no servers: its own address must be one that everybody reaches",
        cure: "leave \"servers\" out, or \"lite\"")
    }
    checkTURN(&resolution)
  }

  private static func checkTURN(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let hasTURN = parameters.strings("servers").contains(where: isTURN)
    let (user, secret) = (parameters.given("turnUser"), parameters.given("turnSecret"))
    if hasTURN && (user == nil || secret == nil) {
      resolution.refuse(
        "servers", "a TURN server needs a user and a password",
        cure: "set \"turnUser\" and \"turnSecret\"")
    }
    if !hasTURN && (user != nil || secret != nil) {
      resolution.refuse(
        user != nil ? "turnUser" : "turnSecret", "there is no TURN server to log in to",
        cure: "add \"turn:host:port\" to \"servers\"")
    }
  }

  private static func isTURN(_ url: String) -> Bool { url.lowercased().hasPrefix("turn") }

  // MARK: Signalling

  /// Checks an address of signalling: its scheme, and that it may be used without TLS.
  /// - Parameter schemes: those allowed.
  static func checkAddress(
    _ resolution: inout Resolution, _ text: String, schemes: [WebAddress.Scheme]
  ) {
    let parameters = resolution.parameters
    do throws(NodeProblem) {
      let address = try RTCCallParameters.address(text, schemes: schemes)
      if !parameters.bool("verify") && !address.isLoopback {
        resolution.refuse(
          "verify", "verification may be disabled only for this machine",
          cure: "remove it; \"roots\" sets a certificate authority of your own")
      }
      if !address.isSecure && !address.isLoopback && !parameters.bool("plain") {
        resolution.refuse(
          "url", "the session would be arranged over the network in plain text",
          cure: "use \(address.scheme == .ws ? "wss:" : "https:"), or set \"plain\" to true")
      }
    } catch {
      resolution.refuse("url", error.text, cure: error.cure)
    }
  }

  /// Checks `headers` as `net.websocket` does.
  static func checkHeaders(_ resolution: inout Resolution) {
    for text in resolution.parameters.strings("headers") {
      if !text.contains(":") {
        resolution.refuse("headers", "a header has no colon", cure: "write it as \"Name: value\"")
      } else if text.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
        resolution.refuse(
          "headers", "a header contains a line break or another control character",
          cure: "remove it; key files often end with a line break")
      }
    }
  }
}

extension ParameterValue {
  /// The values of a list of integers; nil for anything else.
  var integers: [Int]? {
    guard case .list(let values) = self else { return nil }
    return values.compactMap { value in
      guard case .integer(let number) = value else { return nil }
      return number
    }
  }
}
