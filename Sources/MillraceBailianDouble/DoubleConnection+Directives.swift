internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// The client's requests.
extension DoubleConnection {
  func takeText(_ bytes: [UInt8]) {
    guard state != .over else { return checkAfterStop("a message") }
    let json: JSONValue
    do { json = try JSONValue(parsing: bytes) } catch {
      double.violate("noJSON", "\(error)")
      return fail(421, "InvalidParameter", "not JSON")
    }
    let header = json["header"]
    let input = json["payload"]?["input"]
    let directive = input?["directive"]?.string ?? ""
    double.note("> \(directive)")
    checkHeader(header, directive)
    guard state != .fresh || directive == "Start" else {
      double.violate("noStart", "\(directive) came before Start")
      return fail(421, "InvalidParameter", "Start expected")
    }
    if let id = input?["dialog_id"]?.string, !id.isEmpty, state != .fresh, id != dialogID {
      double.violate("wrongDialog", "\(directive) names another dialogue")
    }
    let parameters = json["payload"]?["parameters"]
    switch directive {
    case "Start": start(json["payload"] ?? .null, task: header?["task_id"]?.string ?? "")
    case "SendSpeech": sendSpeech()
    case "StopSpeech": stopSpeech()
    case "CancelSpeech": cancelSpeech()
    case "RequestToSpeak": requestToSpeak()
    case "RequestToRespond": requestToRespond(input ?? .null, parameters ?? .null)
    case "LocalRespondingStarted": localStarted()
    case "LocalRespondingEnded": localEnded()
    case "UpdateInfo": updateInfo(parameters ?? .null)
    case "HeartBeat": say("HeartBeat")
    case "Stop": stop()
    default:
      double.violate("unknownDirective", "\"\(directive)\"")
      fail(422, "DirectiveNotSupported", "no such directive")
    }
  }

  private func checkHeader(_ header: JSONValue?, _ directive: String) {
    let action = header?["action"]?.string
    let wanted = directive == "Start" ? "run-task" : directive == "Stop" ? "finish-task" : "continue-task"
    if action != wanted {
      double.violate("wrongAction", "\(directive) came as \(action ?? "nothing"), not as \(wanted)")
    }
    if header?["streaming"]?.string != "duplex" { double.violate("notDuplex", "header.streaming") }
    let id = header?["task_id"]?.string ?? ""
    if id.isEmpty { double.violate("noTask", "header.task_id is missing") }
    if state != .fresh && id != task { double.violate("wrongTask", "\(directive) has another task_id") }
  }

  // MARK: Start, Stop

  private func start(_ payload: JSONValue, task id: String) {
    guard state == .fresh else { return double.violate("secondStart", "Start came again") }
    task = id
    if !double.begin(session: id, ["task": .string(id), "payload": payload]) {
      double.violate("oldTask", "task_id was used before")
    }
    for (name, value) in [
      ("task_group", "aigc"), ("task", "multimodal-generation"), ("function", "generation"),
      ("model", "multimodal-dialog"),
    ] where payload[name]?.string != value {
      double.violate("wrongStart", "payload.\(name) is not \"\(value)\"")
    }
    let input = payload["input"]
    for name in ["workspace_id", "app_id"] where (input?[name]?.string ?? "").isEmpty {
      double.violate("wrongStart", "input.\(name) is missing")
    }
    let parameters = payload["parameters"]
    let user = parameters?["client_info"]?["user_id"]?.string ?? ""
    if user.isEmpty || user.count > 36 { double.violate("wrongStart", "client_info.user_id") }
    guard let problem = readStart(parameters) else {
      dialogID = input?["dialog_id"]?.string.flatMap { $0.isEmpty ? nil : $0 } ?? dialog
      begin()
      return
    }
    double.violate("wrongStart", problem)
    fail(421, "InvalidParameter", problem)
  }

  /// Starts the dialogue and then listens, unless the scenario has a fault.
  private func begin() {
    // Audio is not allowed until the first Listening.
    state = .thinking
    if let fault = double.firstFault(at: .connecting), misbehave(fault) { return }
    double.later(double.scenario.delay) { [self] in
      guard state == .thinking && reply == 0 && !isStalled else { return }
      send("task-started", header: ["attributes": .object([])], output: nil)
      say("Started")
      double.later(30) { [self] in
        guard state == .thinking && reply == 0 else { return }
        enter(.listening)
        if let fault = double.firstFault(at: .listening) { _ = misbehave(fault) }
      }
    }
  }

  /// Reads the parameters. Returns the first invalid one, or nil.
  private func readStart(_ parameters: JSONValue?) -> String? {
    let up = parameters?["upstream"]
    let down = parameters?["downstream"]
    let rates = [8_000, 16_000, 24_000, 48_000]
    switch up?["type"]?.string {
    case "AudioOnly": hasVideo = false
    case "AudioAndVideo": hasVideo = true
    default: return "upstream.type"
    }
    guard let mode = Mode(rawValue: up?["mode"]?.string ?? "tap2talk") else { return "upstream.mode" }
    self.mode = mode
    let encodings: [String: DoubleEar.Encoding] = ["pcm": .pcm, "raw-opus": .opus, "opus": .oggOpus]
    guard let encoding = encodings[up?["audio_format"]?.string ?? "pcm"] else {
      return "upstream.audio_format"
    }
    isOpusUp = encoding != .pcm
    upRate = up?["sample_rate"]?.integer ?? 16_000
    downRate = down?["sample_rate"]?.integer ?? 24_000
    guard rates.contains(upRate) else { return "upstream.sample_rate" }
    guard rates.contains(downRate) else { return "downstream.sample_rate" }
    guard let format = Self.formats[down?["audio_format"]?.string ?? "pcm"] else {
      return "downstream.audio_format"
    }
    self.format = format
    hasAudio = (down?["type"]?.string ?? "Audio") != "Text"
    hasDialogText = (down?["intermediate_text"]?.string ?? "transcript").contains("dialog")
    ear = DoubleEar(encoding, rate: upRate)
    return nil
  }

  /// The values of downstream.audio_format. "raw-opus2" is without the header.
  private static let formats: [String: SpeechFormat] = [
    "pcm": .pcm, "mp3": .mp3, "opus": .oggOpus, "raw-opus": .opusPackets(hasHead: true),
    "raw-opus2": .opusPackets(hasHead: false),
  ]

  func checkAfterStop(_ what: String) {
    if hasStopped { double.violate("afterStop", "\(what) came after Stop") }
  }

  private func stop() {
    hasStopped = true
    double.change { $0.stops += 1 }
    endSession()
  }

  func endSession() {
    say("Stopped")
    state = .over
    reply += 1
    send("task-finished", header: ["attributes": .object([])], output: nil)
    double.note("< task-finished")
    socket.close()
  }

  // MARK: The user's turn

  private func sendSpeech() {
    // The vendor's samples send it in every mode; in others it has no effect.
    guard mode == .push2talk else { return }
    guard state == .listening else {
      return double.violate("speechOutOfTurn", "SendSpeech while \(state.rawValue)")
    }
    hasSentSpeech = true
    hasDetectedSpeech = false
    ear.reset()
  }

  private func stopSpeech() {
    guard mode == .push2talk else { return }
    guard hasSentSpeech else { return double.violate("stopWithoutSend", "StopSpeech without SendSpeech") }
    hasSentSpeech = false
    guard hasDetectedSpeech else {
      sendError(451, "NoSpeechRecognized", "no speech")
      return enter(.listening)
    }
    endSpeech()
  }

  private func cancelSpeech() {
    guard mode != .duplex else { return double.violate("cancelInDuplex", "CancelSpeech") }
    ear.reset()
    enter(.listening)
  }

  private func requestToSpeak() {
    guard state != .listening else {
      if !crossings.take(.request) {
        double.violate("speakWhileListening", "RequestToSpeak while Listening")
      }
      return
    }
    double.observer.interrupted?()
    say("RequestAccepted")
    enter(.listening)
    // The client has given the reply up, and reports nothing more about it.
    crossings.clear()
  }

  private func requestToRespond(_ input: JSONValue, _ parameters: JSONValue) {
    guard state == .listening else {
      // Sent before the client knew that the user's voice had begun a turn.
      if !isByVoice || state == .responding && !isStartDue {
        double.violate("respondOutOfTurn", "RequestToRespond while \(state.rawValue)")
      }
      return
    }
    // The vendor's Python SDK sends null: it never learns the id.
    if input["dialog_id"] == nil { double.violate("noDialog", "RequestToRespond without dialog_id") }
    guard let text = input["text"]?.string, let kind = input["type"]?.string else {
      double.violate("wrongRequest", "RequestToRespond without text or type")
      return fail(421, "InvalidParameter", "input.text is missing")
    }
    let images = parameters["images"]?.array ?? []
    if images.count > 1 { double.violate("manyPictures", "\(images.count) in one message") }
    for image in images { checkPicture(image, mayBeURL: true) }
    let isVideoOpen = parameters["biz_params"]?["videos"] != nil
    var turn = kind == "transcript" || isVideoOpen ? BailianScenario.Turn() : double.nextTurn()
    if kind == "transcript" {
      turn.says = text
      turn.thinks = 0
    } else if let action = parameters["biz_params"]?["videos"]?.array?.first?["action"]?.string {
      checkVideo(action)
      turn.says = action == "connect" ? "I can see you." : "I see nothing any more."
      turn.commands = [
        .object([
          JSONValue.Member(
            "name",
            .string(
              action == "connect" ? "switch_video_call_success" : "exit_video_call_success"))
        ])
      ]
    } else if !images.isEmpty {
      turn.says = "I see a picture."
      turn.commands = []
    }
    answer(turn, byVoice: false)
  }

  private func checkVideo(_ action: String) {
    if !hasVideo { double.violate("filmWithoutVideo", "upstream.type is AudioOnly") }
    isVideoOpen = action == "connect"
    isVideoAnswered = false
  }

  private func updateInfo(_ parameters: JSONValue) {
    let images = parameters["images"]?.array ?? []
    if images.count > 1 { double.violate("manyPictures", "\(images.count) in one message") }
    for image in images {
      if !isVideoOpen { double.violate("pictureWithoutFilm", "UpdateInfo with a picture before connect") }
      checkPicture(image, mayBeURL: false)
    }
    let now = clock.now
    let largest = images.compactMap { $0["value"]?.string?.utf8.count }.max() ?? 0
    let keeps = double.scenario.keeps
    let isAnswered = isVideoAnswered
    double.change {
      $0.pictures += images.count
      if !isAnswered { $0.earlyPictures += images.count }
      $0.largestPicture = max($0.largestPicture, largest)
      if keeps && !images.isEmpty { $0.pictureTimes.append(now) }
    }
  }

  private func checkPicture(_ image: JSONValue, mayBeURL: Bool) {
    let value = image["value"]?.string ?? ""
    switch image["type"]?.string {
    case "base64" where value.utf8.count > 180_000:
      double.violate("largePicture", "\(value.utf8.count) bytes of Base64")
    case "base64" where value.hasPrefix("data:"): double.violate("picturePrefix", "a data: prefix")
    case "base64" where !value.hasPrefix("/9j/"): double.violate("noJPEG", "a picture is no JPEG")
    case "base64": break
    case "url" where mayBeURL: break
    default: double.violate("wrongPicture", "neither base64 nor, where it may be, url")
    }
  }
}
