internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// Checks the parameters of `bailian.dialog` and resolves its formats.
enum BailianResolution {
  /// Bytes of a packet of an encoded reply, which may be cut anywhere: some hundred milliseconds.
  private static let pieceBytes = 1_024
  /// The largest Opus packet, RFC 6716 section 3.4: three frames of 1,275 bytes in 60 ms, six in 120 ms.
  private static let packetBytes = 7_680

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    do throws(NodeProblem) {
      let rules = try rules(parameters, followsPlayback: true)
      var start = rules.start
      if let shape = resolution.inputs["audio"] {
        start.upstream.rate = shape.format.rate ?? start.upstream.rate
      }
      for problem in start.problems {
        resolution.refuse(Self.parameter[problem.path], "the service would refuse it: \(problem)")
      }
    } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
    ServiceParameters.checkAddress(&resolution, secure: .wss, plain: .ws, kind: "a WebSocket")
    ServiceParameters.checkProxy(&resolution)
    // Both are sent in headers.
    for name in ["key", "workspace"] { ServiceParameters.checkHeader(&resolution, name) }
    if resolution.linkedInputs.contains("image") && !parameters.bool("video") {
      resolution.refuse(
        "video", "images need a dialogue with video", cure: "set \"video\" to true")
    }
    if let shape = resolution.inputs["audio"], shape.format.kind == .opus, (shape.format.channels ?? 1) != 1 {
      resolution.refuse(nil, "the service accepts mono only", cure: "encode one channel")
    }
    // Replies arrive faster than real time and may wait outside of the graph.
    resolution.pacing = .waits
    resolution.latency = Nanoseconds(parameters.number("frame") * 1e6)
    if parameters.string("format") != "none" {
      var shape = sound(parameters)
      // An unread reply must not block the user's speech: burst 0.
      shape.burst = 0
      resolution.outputs["audio"] = shape
    }
    let bytes = parameters.integer("eventBytes")
    resolution.outputs["text"] = OutputShape(.text, packetDuration: nil, packetBytes: bytes, burst: 0)
    // Time, node and name precede the members.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: bytes + 256)
  }

  /// The parameter a member of the message comes from.
  private static let parameter = [
    "input.workspace_id": "workspace", "input.app_id": "app", "client_info.user_id": "user",
    "client_info.device.uuid": "device", "downstream.sample_rate": "rate",
    "downstream.frame_size": "opusFrame", "downstream.bit_rate": "opusBitrate",
    "downstream.word_timestamp_enabled": "wordTimestamps",
  ]

  private static func sound(_ parameters: ParameterValues) -> OutputShape {
    let rate = parameters.integer("rate")
    switch parameters.string("format") {
    case "mp3": return OutputShape(.mp3, packetDuration: nil, packetBytes: pieceBytes)
    case "opus": return OutputShape(.ogg, packetDuration: nil, packetBytes: pieceBytes)
    case "raw-opus", "raw-opus2":
      return OutputShape(.opus(rate: rate, channels: 1), packetDuration: nil, packetBytes: packetBytes)
    default: return .pcm(rate: rate, channels: 1, sample: .s16, frames: rate / 50)
    }
  }

  // MARK: Rules

  static func rules(
    _ values: ParameterValues, followsPlayback: Bool, inputRate: Int? = nil, isOpus: Bool = false
  ) throws(NodeProblem) -> BailianRules {
    var start = try start(values)
    if let inputRate { start.upstream.rate = inputRate }
    if isOpus { start.upstream.format = BailianAudio.Up(rawValue: values.string("opusUp")) ?? .rawOpus }
    var rules = BailianRules(start, reconnect: values.reconnectPolicy)
    rules.followsPlayback = followsPlayback
    rules.live = BailianRules.Live(rawValue: values.string("live")) ?? .command
    rules.heartBeat = values.nanoseconds("heartBeat")
    rules.silence = values.nanoseconds("silence")
    rules.linger = values.nanoseconds("linger")
    rules.close = .milliseconds(Int64(values.integer("close")))
    rules.waitsAfterEnd = values.waitsAfterEnd
    rules.renew = values.nanoseconds("renew")
    rules.begin = values.nanoseconds("begin")
    return rules
  }

  static func start(_ values: ParameterValues) throws(NodeProblem) -> BailianStart {
    var start = BailianStart(
      workspace: values.string("workspace"), app: values.string("app"), user: values.string("user"))
    start.dialog = values.text("dialog")
    start.upstream.mode = DialogMode(rawValue: values.string("mode")) ?? .duplex
    start.upstream.hasVideo = values.bool("video")
    start.upstream.vocabulary = values.text("vocabulary")
    start.upstream.replaceWords = try replaceWords(values)
    if values.has("serverVADStart") { start.upstream.serverVADStart = values.bool("serverVADStart") }
    start.downstream = downstream(values)
    start.client.device = values.text("device")
    start.client.ip = values.text("ip")
    start.client.latitude = values.text("latitude")
    start.client.longitude = values.text("longitude")
    start.client.city = values.text("city")
    start.client.foregroundApp = values.text("foregroundApp")
    start.client.status = try values.object("clientStatus")
    start.client.sdk = values.text("sdk")
    start.attributes = try values.object("dialogAttributes")
    start.biz = try biz(values)
    return start
  }

  private static func downstream(_ values: ParameterValues) -> BailianStart.Downstream {
    var result = BailianStart.Downstream()
    result.format = BailianAudio.Down(rawValue: values.string("format")) ?? .pcm
    result.hasAudio = values.string("format") != "none"
    result.rate = values.integer("rate")
    result.voice = values.text("voice")
    result.frameMilliseconds = number(values, "opusFrame")
    result.bitRate = number(values, "opusBitrate")
    result.volume = number(values, "volume")
    result.speechRate = number(values, "speechRate")
    result.pitchRate = number(values, "pitchRate")
    result.texts = Set(values.strings("texts").compactMap(BailianStart.Text.init(rawValue:)))
    result.rateLimit = number(values, "rateLimit")
    result.isIncremental = values.bool("incremental")
    result.wordTimestamps = values.bool("wordTimestamps")
    result.instruction = values.text("instruction")
    result.debug = values.bool("debug")
    return result
  }

  private static func number(_ values: ParameterValues, _ name: String) -> Int? {
    values.has(name) ? values.integer(name) : nil
  }

  /// `source=target`, or the vendor's form: `{"source":…,"target":…,"match_mode":…}`.
  private static func replaceWords(_ values: ParameterValues) throws(NodeProblem) -> [BailianStart
    .ReplaceWord]
  {
    let name = "replaceWords"
    var result: [BailianStart.ReplaceWord] = []
    for text in values.strings(name) {
      guard text.hasPrefix("{") else {
        let (source, target) = try pair(text, name)
        result.append(BailianStart.ReplaceWord(source, target))
        continue
      }
      let json: JSONValue
      do { json = try JSONValue(parsing: text) } catch {
        throw NodeProblem(error.description, parameter: name)
      }
      guard let source = json["source"]?.string, let target = json["target"]?.string else {
        throw NodeProblem("an entry needs the strings \"source\" and \"target\"", parameter: name)
      }
      result.append(BailianStart.ReplaceWord(source, target, match: json["match_mode"]?.string))
    }
    return result
  }

  private static func pairs(
    _ values: ParameterValues, _ name: String
  ) throws(NodeProblem) -> [(String, String)] {
    var result: [(String, String)] = []
    for text in values.strings(name) { result.append(try pair(text, name)) }
    return result
  }

  private static func pair(_ text: String, _ name: String) throws(NodeProblem) -> (String, String) {
    guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
      throw NodeProblem(
        "an entry needs a name before \"=\"", parameter: name, cure: "write it as \"name=value\"")
    }
    return (String(text[..<sign]), String(text[text.index(after: sign)...]))
  }

  /// `bizParams`, with the prompt variables added.
  private static func biz(_ values: ParameterValues) throws(NodeProblem) -> JSONValue? {
    var members = try values.object("bizParams")?.members ?? []
    let variables = try pairs(values, "promptVariables").map { JSONValue.Member($0.0, .string($0.1)) }
    if !variables.isEmpty {
      let name = "user_prompt_params"
      let old = members.last { $0.name == name }?.value.members ?? []
      members.removeAll { $0.name == name }
      members.append(JSONValue.Member(name, .object(old + variables)))
    }
    return members.isEmpty ? nil : .object(members)
  }

  static func endpoint(
    _ values: ParameterValues, _ rules: BailianRules, secrets: Secrets
  ) throws(NetError) -> BailianEndpoint {
    var request = try values.webSocketRequest()
    // The service has its own heartbeats; a message may hold many seconds of audio.
    request.limits.message = 1 << 20
    return BailianEndpoint(
      request: request, key: values.string("key"),
      workspace: values.bool("workspaceHeader") ? values.string("workspace") : nil,
      isInspected: values.bool("dataInspection"),
      hasPackets: rules.start.downstream.format.isPackets, secrets: secrets)
  }
}
