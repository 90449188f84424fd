internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSound

/// Sound and pictures of the ports, in both directions.
extension RTCPorts {
  /// Hands over the oldest packets of sound and pictures.
  /// - Returns: whether there were any, so that the thread of the sessions is to be woken; and whether anything can be heard or seen in
  ///   them.
  mutating func sendMedia(_ ports: inout Ports) -> (any: Bool, perceptible: Bool) {
    var (isBusy, isPerceptible) = (false, false)
    if let input = inputs.audio, let soundUp {
      if soundUp.part.process(&ports, input: input, exchange: exchange) {
        (isBusy, isPerceptible) = (true, !soundUp.part.isSilent)
      }
      if let refusal = soundUp.part.takeRefusal() { post(refusal, &ports) }
    }
    if let input = inputs.video, let pictureUp {
      if pictureUp.part.process(&ports, input: input, exchange: exchange) {
        (isBusy, isPerceptible) = (true, true)
      }
    }
    return (isBusy, isPerceptible)
  }

  /// Emits what is due of the received sound and pictures. True when anything was done; otherwise the node is called when something is
  /// due.
  mutating func receiveMedia(_ ports: inout Ports) throws(NodeFault) -> Bool {
    var isBusy = false
    if let soundDown {
      let reply: HeldReply = areReplies ? ports.currentReply : .none
      if try soundDown.part.process(&ports, output: outputs.audio, exchange: exchange, reply: reply) {
        isBusy = true
      }
    }
    if try receivePicture(&ports) { isBusy = true }
    if !isBusy, let due = nextDue(after: ports.now) { ports.wake(at: due) }
    return isBusy
  }

  /// Emits the oldest received picture when it is due. True when a record was handled.
  private func receivePicture(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard !picturesDown.isEmpty, let next = PictureDownlink.next(exchange) else { return false }
    guard case .picture(let medium) = next, let track = track(of: medium) else {
      if case .end(let source) = next {
        for index in 0..<picturesDown.count { picturesDown[index].downlink.part.end(source: source) }
      }
      PictureDownlink.drop(exchange)
      return true
    }
    var playTime: Nanoseconds?
    if let capture = track.downlink.part.nextCapture(exchange) {
      // Of the same session: with several the clocks of their senders differ.
      let source = track.downlink.part.nextSource(exchange)
      let sound = track.downlink.part.nextSound(exchange)
      playTime = soundDown?.part.playTime(ofCapture: capture, source: source, sound: sound)
    }
    return try track.downlink.part.process(
      &ports, output: track.output, exchange: exchange, playTime: playTime,
      isShared: picturesDown.count > 1)
  }

  /// By hand, since iterating an array makes a heap request an element in debug builds.
  private func track(of medium: UInt8) -> PictureTrack? {
    for index in 0..<picturesDown.count {
      if picturesDown[index].medium ?? medium == medium { return picturesDown[index] }
    }
    return nil
  }

  /// When sound or a picture is due next; nil: nothing waits for a time. What is due already waits for room, which wakes the node.
  private func nextDue(after now: Nanoseconds) -> Nanoseconds? {
    var next = Nanoseconds.max
    if let due = soundDown?.part.due, due > now { next = due }
    for index in 0..<picturesDown.count {
      if let due = picturesDown[index].downlink.part.due, due > now { next = min(next, due) }
    }
    return next == .max ? nil : next
  }

  /// Says why sound at the input cannot be sent; once for each reason, so that it may allocate.
  private mutating func post(_ refusal: SoundRefusal, _ ports: inout Ports) {
    let text = Array(refusal.description.utf8)
    ports.post(MessagePorts.errorEvent) { event in
      event.field("vendor", "rtc")
      event.field("category", "request")
      event.field("reaction", "continue")
      event.field("scope", "connection")
      event.field("text", utf8: text.span)
    }
  }

  // MARK: Setup

  /// How sound is sent, by the parameters of `RTCParameters.sent` and `codecs`.
  static func sound(_ parameters: ParameterValues) -> SoundUplinkSettings {
    var settings = SoundUplinkSettings()
    settings.bitrate = parameters.integer("bitrate")
    settings.fec = parameters.bool("fec")
    settings.dtx = parameters.bool("dtx")
    settings.stereo = parameters.bool("stereo")
    settings.ptime = parameters.integer("ptime")
    if parameters.has("codecs") {
      settings.codecs = parameters.strings("codecs").map { name in
        switch name {
        case "pcmu": SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1)
        case "pcma": SoundCodec(kind: .pcma, clockRate: 8_000, channels: 1)
        default: SoundCodec.opus
        }
      }
    }
    return settings
  }

  static func soundUp(
    _ setup: borrowing NodeSetup, _ input: Int?, _ settings: SoundUplinkSettings?
  ) throws(NodeProblem) -> PortPart<SoundUplink>? {
    guard let input, let shape = setup.inputs[input].shape else { return nil }
    return PortPart(try SoundUplink(shape, settings ?? sound(setup.parameters)))
  }

  static func soundDown(_ setup: borrowing NodeSetup, _ outputs: Outputs) throws(NodeProblem) -> PortPart<
    SoundDownlink
  >? {
    var taps: [SoundTapRequest] = []
    for track in outputs.audios {
      guard case .pcm(_, _, let sample) = setup.outputs[track.output].shape?.format else { continue }
      taps.append(SoundTapRequest(output: track.output, medium: track.medium, sample: sample))
    }
    guard let output = outputs.audio ?? taps.first?.output, let shape = setup.outputs[output].shape else {
      return nil
    }
    var settings = SoundDownlinkSettings()
    settings.delays = delays(setup.parameters)
    let sources = soundSources(setup.parameters)
    return PortPart(try SoundDownlink(shape, settings, taps: taps, sources: sources))
  }

  /// Sources that are heard at the same time: as many as have slots, where the node has the parameter `slots`.
  static func soundSources(_ parameters: ParameterValues) -> Int {
    max(SoundMixer.usualSources, parameters.has("slots") ? parameters.integer("slots") : 0)
  }

  /// How long received sound waits for late packets: `jitterLeast` to `jitterMost`.
  static func delays(_ parameters: ParameterValues) -> ClosedRange<Nanoseconds> {
    let (least, most) = (parameters.integer("jitterLeast"), parameters.integer("jitterMost"))
    return Nanoseconds.milliseconds(Int64(least))...Nanoseconds.milliseconds(Int64(max(least, most)))
  }

  static func pictureUp(_ setup: borrowing NodeSetup, _ input: Int?) -> PortPart<PictureUplink>? {
    guard let input, let shape = setup.inputs[input].shape else { return nil }
    guard let uplink = PictureUplink(shape.format.kind) else { return nil }
    return PortPart(uplink)
  }

  static func picturesDown(_ setup: borrowing NodeSetup, _ outputs: Outputs) -> [PictureTrack] {
    var tracks: [PictureTrack] = []
    func add(_ output: Int, _ medium: UInt8?) {
      guard let shape = setup.outputs[output].shape,
        let downlink = PictureDownlink(shape.format.kind, packetBytes: shape.packetBytes)
      else { return }
      tracks.append(PictureTrack(output: output, medium: medium, downlink: PortPart(downlink)))
    }
    if let output = outputs.video { add(output, nil) }
    for track in outputs.videos { add(track.output, track.medium) }
    return tracks
  }
}
