internal import Glibc
internal import MillraceCore
internal import MillraceDialog
internal import MillraceFiles
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCWire
internal import MillraceService

/// From the parameters and the links of a node to the settings of its call. The first ports of every node are `audio`, `video`, `data`.
enum RTCCallParameters {
  /// Bits a second that sound keeps, and pictures keep, however slow the network is.
  private static let leastSound = 16_000
  private static let leastVideo = 100_000

  /// What the sessions of a node carry: what is linked.
  /// - Parameters:
  ///   - sends: the node sends at all.
  ///   - receives: it receives at all.
  static func media(_ setup: borrowing NodeSetup, sends: Bool, receives: Bool) -> SignalMedia {
    func direction(_ index: Int) -> MediaDirection {
      MediaDirection(
        sends: sends && setup.inputs[index].isLinked, receives: receives && setup.outputs[index].isLinked)
    }
    return SignalMedia(
      audio: direction(0), video: direction(1),
      hasData: setup.inputs[2].isLinked || setup.outputs[2].isLinked || RTCNodeCall.isWantedForData(setup))
  }

  /// The settings of a call.
  static func settings(
    _ setup: borrowing NodeSetup, _ media: SignalMedia
  ) throws(NodeProblem) -> RTCCallSettings {
    let parameters = setup.parameters
    try checkInterfaces(parameters)
    try checkFiles(parameters)
    var settings = RTCCallSettings()
    settings.session = session(setup, media)
    settings.servers = try servers(parameters)
    settings.resolve = RTCServers.resolve
    settings.dataLabel = parameters.string("dataLabel")
    // What the peer may send: a node of data takes what fits into its link.
    settings.largestMessage =
      RTCNodeCall.isWantedForData(setup) || !parameters.has("largest")
      ? DataLink.messageBytes : parameters.integer("largest")
    settings.hasDataPorts = setup.inputs[2].isLinked || setup.outputs[2].isLinked
    settings.signal = .milliseconds(Int64(parameters.integer("signal")))
    settings.media = .milliseconds(Int64(parameters.integer("media")))
    settings.reconnect = parameters.reconnectPolicy
    settings.stats = .milliseconds(Int64(parameters.integer("stats")))
    settings.eventBytes = parameters.integer("eventBytes")
    settings.secrets = setup.secrets
    return settings
  }

  // MARK: Sessions

  private static func session(_ setup: borrowing NodeSetup, _ media: SignalMedia) -> RTCSessionSettings {
    let parameters = setup.parameters
    var session = RTCSessionSettings()
    session.ice = ice(parameters)
    session.connect = .milliseconds(Int64(parameters.integer("connect")))
    let bitrate = parameters.integer("bitrate")
    session.soundBitrate = min(leastSound, bitrate)...bitrate
    session.videoBitrate = videoBitrate(parameters)
    session.sections = []
    if media.audio != .inactive { session.sections.append(sound(setup, media.audio)) }
    if media.video != .inactive {
      let format = RTCResolution.videoFormat(parameters, setup.inputs[1].shape)
      session.sections.append(.video(media.video, codecs: [format.kind == .vp8 ? .vp8 : .h264]))
    }
    // A data channel of another node may be attached at any time.
    session.sections.append(.data())
    return session
  }

  /// Bits a second of the pictures of one medium.
  static func videoBitrate(_ parameters: ParameterValues) -> ClosedRange<Int> {
    let most = parameters.integer("videoBitrate")
    return min(leastVideo, most)...most
  }

  private static func sound(_ setup: borrowing NodeSetup, _ direction: MediaDirection) -> MediaSection {
    let parameters = setup.parameters
    // What is passed on as it is has one codec.
    let isOpus =
      setup.inputs[0].shape?.format.kind == .opus
      || setup.outputs[0].isLinked && setup.outputs[0].shape?.format.kind == .opus
    let names = isOpus || !parameters.has("codecs") ? ["opus"] : parameters.strings("codecs")
    let isStereo = parameters.bool("stereo") || parameters.integer("channels") == 2
    let codecs = names.map { name -> RTPCodec in
      switch name {
      case "pcmu": .pcmu
      case "pcma": .pcma
      default: .opus(isStereo: isStereo)
      }
    }
    var section = MediaSection.audio(direction, codecs: codecs)
    section.packetMilliseconds = parameters.integer("ptime")
    return section
  }

  // MARK: ICE

  /// Checks that this machine has the addresses of `interfaces`. When a node starts: the machine that checks a graph may be another one.
  static func checkInterfaces(
    _ parameters: ParameterValues, among own: [DatagramAddress] = LocalAddresses.all()
  ) throws(NodeProblem) {
    // Without an answer of the system ICE says what cannot be used.
    guard !own.isEmpty else { return }
    let missing = parameters.strings("interfaces").filter { !LocalAddresses.contains($0, among: own) }
    guard !missing.isEmpty else { return }
    let quoted = missing.map { "\"\($0)\"" }.joined(separator: ", ")
    let names = own.map(\.host)
    let shown = names.prefix(LocalAddresses.mostShown).joined(separator: ", ")
    let others = names.count > LocalAddresses.mostShown ? ", …" : ""
    let wrong = missing.count == 1 ? "is no address" : "are no addresses"
    throw NodeProblem(
      "\(quoted) \(wrong) of this machine", parameter: "interfaces", cure: "use some of \(shown)\(others)")
  }

  /// The parameters of ICE, without the servers.
  static func ice(_ parameters: ParameterValues) -> ICESettings {
    var ice = ICESettings()
    ice.isLite = parameters.bool("lite")
    ice.isRelayOnly = parameters.string("policy") == "relay"
    ice.hasConsent = parameters.bool("consent")
    ice.addresses = parameters.strings("interfaces")
    let ports = parameters["ports"]?.integers ?? []
    if ports.count == 2, ports[0] <= ports[1] {
      ice.ports = UInt16(clamping: ports[0])...UInt16(clamping: ports[1])
    }
    return ice
  }

  /// What is wrong with the entries of `servers`, one problem for each.
  static func serverProblems(_ parameters: ParameterValues) -> [NodeProblem] {
    parameters.strings("servers").compactMap { url in
      RTCServers.problem(url).map { problem in
        NodeProblem(
          problem, parameter: "servers", cure: "write stun:host:port or turn:host:port?transport=udp")
      }
    }
  }

  /// The STUN and TURN servers.
  /// - Throws: the first that is not written as one.
  static func servers(_ parameters: ParameterValues) throws(NodeProblem) -> [SignalServer] {
    let (user, password) = (parameters.given("turnUser"), parameters.given("turnSecret"))
    if let problem = serverProblems(parameters).first { throw problem }
    var servers: [SignalServer] = []
    for url in parameters.strings("servers") {
      let isRelay = url.lowercased().hasPrefix("turn")
      servers.append(
        SignalServer(url: url, user: isRelay ? user : nil, password: isRelay ? password : nil))
    }
    return servers
  }

  // MARK: Signalling

  /// Checks that the files of TLS can be read. When a node starts, as `checkInterfaces`.
  static func checkFiles(_ parameters: ParameterValues) throws(NodeProblem) {
    for name in ["certificate", "key", "roots"] {
      guard let path = parameters.given(name), unsafe access(path, R_OK) != 0 else { continue }
      let problem = FileMessages.problem(errno, path, for: .reading)
      throw NodeProblem(problem.text, parameter: name, cure: problem.cure)
    }
  }

  /// `headers`, as names and values.
  static func headers(_ parameters: ParameterValues) -> [(name: String, value: String)] {
    parameters.strings("headers").map { text in
      let colon = text.firstIndex(of: ":") ?? text.endIndex
      return (String(text[..<colon]), String(text[colon...].dropFirst().drop { $0 == " " }))
    }
  }

  /// An address in a parameter.
  /// - Parameter schemes: those that the form of signalling can use.
  static func address(
    _ text: String, _ parameter: String = "url", schemes: [WebAddress.Scheme] = [.https, .http]
  ) throws(NodeProblem) -> WebAddress {
    let scheme = text.prefix { $0 != ":" }.lowercased()
    guard schemes.contains(where: { $0.rawValue == scheme }) else {
      throw NodeProblem("the address must begin with \(words(schemes))", parameter: parameter)
    }
    do throws(NetError) { return try WebAddress(text) } catch {
      throw NodeProblem(error.text, parameter: parameter)
    }
  }

  /// `https:, http: or ws:`.
  private static func words(_ schemes: [WebAddress.Scheme]) -> String {
    let names = schemes.map { "\($0.rawValue):" }
    guard names.count > 1, let last = names.last else { return names.joined() }
    return "\(names.dropLast().joined(separator: ", ")) or \(last)"
  }

  /// `proxy`.
  static func proxy(_ parameters: ParameterValues) throws(NodeProblem) -> NetProxy {
    do throws(NetError) { return try parameters.proxy } catch {
      throw NodeProblem(error.text, parameter: "proxy")
    }
  }
}
