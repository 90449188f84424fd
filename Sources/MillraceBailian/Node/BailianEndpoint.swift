internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// The service's wire: a WebSocket for each task, JSON in text messages, audio in binary ones.
struct BailianEndpoint: ServiceEndpoint {
  static let vendor = "bailian"

  /// Bytes of a JPEG whose Base64 has 180,000 bytes, the service's limit.
  private static let maxImageBytes = 135_000
  /// The longest Opus packet: six frames of 1,275 bytes and their lengths, 120 ms.
  private static let maxPacketBytes = 7_680

  var request: WebSocketRequest
  var key: String
  /// `X-DashScope-WorkSpace`.
  var workspace: String?
  /// `X-DashScope-DataInspection`.
  var isInspected: Bool
  /// Replies are Opus packets, one per WebSocket message.
  var hasPackets: Bool
  /// Redacted in every message; new keys are added.
  var secrets = Secrets()
  private var task = ""

  init(
    request: WebSocketRequest, key: String, workspace: String?, isInspected: Bool, hasPackets: Bool,
    secrets: Secrets
  ) {
    self.request = request
    self.key = key
    self.workspace = workspace
    self.isInspected = isInspected
    self.hasPackets = hasPackets
    self.secrets = secrets
  }

  mutating func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<BailianMessage>) -> Void
  ) -> WebSocketWire {
    task = RandomID.uuid()
    var request = request
    request.headers.append(("Authorization", "Bearer \(key)"))
    if let workspace { request.headers.append(("X-DashScope-WorkSpace", workspace)) }
    if isInspected { request.headers.append(("X-DashScope-DataInspection", "enable")) }
    return WebSocketWire(
      request, on: loop, vendor: Self.vendor,
      cure: "; check \"key\", which the example graphs take from DASHSCOPE_API_KEY, and \"workspace\"",
      parse: Self.parse, receive)
  }

  private static func parse(_ bytes: [UInt8]) -> ServiceEvent<BailianMessage> {
    do throws(JSONFormProblem) { return .message(try BailianMessage(parsing: bytes)) } catch {
      return .invalidMessage(error.description)
    }
  }

  func send(_ request: BailianRequest, from session: BailianSession, over wire: WebSocketWire) -> Bool {
    wire.send(.text(request.json(task: task, dialog: session.dialog).bytes))
  }

  func boundary(of request: BailianRequest) -> VoiceBoundary? {
    switch request {
    case .sendSpeech: .begin
    case .stopSpeech: .end
    default: nil
    }
  }

  func closingMessage(of session: BailianSession) -> BailianRequest? { .stop }

  mutating func use(_ credential: String) {
    secrets.add([credential])
    key = credential
  }

  func command(forImage jpeg: [UInt8]) -> ImageCommand {
    guard jpeg.count <= Self.maxImageBytes else {
      return .refuse("\(jpeg.count) bytes exceed the limit of \(Self.maxImageBytes)")
    }
    return .send(.update(["images": [["type": "base64", "value": .string(Base64.encode(jpeg))]]]))
  }

  func problem(withAudio bytes: [UInt8]) -> String? {
    guard hasPackets && bytes.count > Self.maxPacketBytes else { return nil }
    return "a message of \(bytes.count) bytes is not an Opus packet"
  }
}
