internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// The service's wire: a share of a connection, calls of the session, and the picture that waits for the next question.
struct TuyaEndpoint: ServiceEndpoint {
  static let vendor = "tuya"

  private let settings: TuyaWireSettings
  private let target: TuyaTarget
  /// A share of a connection with a name; nil: one of its own.
  private let shared: NamedConnections<TuyaConnection, TuyaTarget>.Lease?
  private var own: TuyaConnection?
  private var tokens: TuyaTokens
  private let given: TuyaGrant
  private let secrets: Secrets
  private let check: TuyaReplyCheck
  /// The latest picture of `image`.
  private var picture: [UInt8]?

  /// - Parameters:
  ///   - values: the node's parameters.
  ///   - voice: how the user's audio is sent.
  ///   - secrets: learns what the service hands out.
  /// - Throws: what is wrong with a parameter, or that the named connection has other settings.
  init(_ values: ParameterValues, _ voice: TuyaVoice, secrets: Secrets) throws(NodeProblem) {
    settings = TuyaWireSettings(voice: voice, cache: values.given("cache"))
    let target = try TuyaResolution.target(values)
    self.target = target
    shared = try values.given("connection").map { (name) throws(NodeProblem) in
      try TuyaConnection.shared.lease(name, target) { (target) throws(NodeProblem) in
        do throws(NetError) { return try TuyaConnection(target) } catch { throw NodeProblem(error.text) }
      }
    }
    given = TuyaResolution.given(values, target.access)
    tokens = try TuyaResolution.tokens(values, target.access, secrets: secrets)
    self.secrets = secrets
    check = TuyaReplyCheck(values.string("reply"), rate: values.integer("rate"))
  }

  mutating func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<TuyaNotice>) -> Void
  ) -> TuyaWire {
    let connection = shared?.connection ?? ownConnection(on: loop)
    let check = check
    return TuyaWire(settings, over: connection, tokens: tokens, on: loop) { event in
      switch event {
      case .message(.streamBegan(.audio(let parameters))):
        check.begin(parameters)
        receive(event)
      case .audio(let bytes): for frame in check.frames(in: bytes) { receive(.audio(frame)) }
      default: receive(event)
      }
    }
  }

  private mutating func ownConnection(on loop: NetLoop) -> TuyaConnection {
    if let own { return own }
    let connection = TuyaConnection(target, on: loop)
    own = connection
    return connection
  }

  mutating func send(_ request: TuyaCall, from session: TuyaSession, over wire: TuyaWire) -> Bool {
    guard case .heldImage(let channel, let userData) = request else { return wire.call(request) }
    guard let picture else { return true }
    self.picture = nil
    return wire.call(.image(picture, format: .jpeg, channel, userData: userData, call: 0))
  }

  func boundary(of request: TuyaCall) -> VoiceBoundary? {
    switch request {
    case .beginVoice: .begin
    case .endVoice(let isCut): isCut ? .cut : .end
    default: nil
    }
  }

  mutating func use(_ credential: String) {
    secrets.add([credential])
    tokens.stop()
    var grant = given
    grant.token = TuyaSecret(credential)
    tokens = TuyaTokens(given: grant)
  }

  // MARK: Pictures, files and sound

  mutating func command(forImage jpeg: [UInt8]) -> ImageCommand {
    guard jpeg.starts(with: [0xFF, 0xD8]) else { return .refuse("it is not a JPEG") }
    guard jpeg.count <= TuyaPicture.mostBytes else {
      return .refuse("\(jpeg.count) bytes exceed the limit of \(TuyaPicture.mostBytes)")
    }
    picture = jpeg
    return .hold
  }

  func command(forFile path: String) -> FileCommand {
    .send(.extra(name: "sendFile", payload: ["path": .string(path)]))
  }

  func problem(withAudio bytes: [UInt8]) -> String? { check.problem(with: bytes) }
}
