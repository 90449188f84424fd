internal import MillraceDialog
internal import MillraceJSON

/// A question that is complete: a text, images, or both.
struct TuyaQuestion: Sendable {
  /// The longest text, in bytes: it has to fit into a packet that no other side refuses.
  static let mostBytes = 32_000

  var text: String
  var images: [([UInt8], TuyaImageFormat)]
  /// The `id` of the command.
  var id: String?

  /// Reads a question; throws why it cannot be asked.
  /// - Parameters:
  ///   - hasImage: an image is held that goes with it.
  ///   - terms: what the agent takes; nil: not known yet.
  init(
    _ text: String, _ images: [DialogImage], hasImage: Bool, id: String?, _ terms: TuyaTerms?
  ) throws(DialogError) {
    self.text = text
    self.id = id
    self.images = []
    for image in images {
      guard case .base64(let text) = image else {
        throw Self.refusal(.invalidPacket, "the service takes images as bytes, not as addresses")
      }
      self.images.append(try TuyaPicture.read(base64: text))
    }
    guard !text.isEmpty || !images.isEmpty || hasImage else {
      throw Self.refusal(.invalidPacket, "the question is empty")
    }
    try Self.check(text)
    if let terms, let problem = problem(terms) { throw problem }
  }

  /// Checks the length of a text to the agent.
  /// - Throws: code 39008: it is too long.
  static func check(_ text: String) throws(DialogError) {
    guard text.utf8.count <= mostBytes else {
      throw refusal(
        .invalidPacket, "the text has \(text.utf8.count) bytes, and may have \(mostBytes); shorten it")
    }
  }

  /// Why an agent cannot be asked it; nil: it can.
  func problem(_ terms: TuyaTerms) -> DialogError? {
    if !text.isEmpty && terms.channel(.text) == nil {
      return Self.refusal(.invalidChannel, "the agent takes no text")
    }
    if !images.isEmpty && terms.channel(.image) == nil {
      return Self.refusal(.invalidChannel, "the agent takes no images")
    }
    return nil
  }

  private static func refusal(_ code: TuyaErrorCode, _ text: String) -> DialogError {
    .tuya(code, text, scope: .command)
  }
}

/// Calls whose outcome the connection reports, by their numbers.
struct TuyaPendingCalls: Sendable {
  /// What a call is for, and the `id` of its command.
  enum Purpose: Sendable, Hashable {
    /// A token.
    case token(String?)
    /// An image or a file.
    case data(String?)

    fileprivate var command: String? {
      switch self {
      case .token(let id), .data(let id): id
      }
    }
  }

  /// The most images without a command that are remembered: only their failure would be told.
  private static let mostUnnamed = 64

  private var pending: [Int: Purpose] = [:]
  private var latest = 0

  /// A number of which nothing is remembered here.
  mutating func number() -> Int {
    latest += 1
    return latest
  }

  mutating func add(_ purpose: Purpose) -> Int {
    latest += 1
    if purpose.command != nil || pending.count < Self.mostUnnamed { pending[latest] = purpose }
    return latest
  }

  /// The `id` of the command that asked for a token; nil: none did under this number.
  mutating func removeToken(_ number: Int) -> String?? {
    guard case .token(let id)? = pending[number] else { return nil }
    pending[number] = nil
    return .some(id)
  }

  /// The `id` of the command that sent an image or a file; nil: none did under this number.
  mutating func removeData(_ number: Int) -> String?? {
    guard case .data(let id)? = pending[number] else { return nil }
    pending[number] = nil
    return .some(id)
  }

  /// Progress with the `id` of its command in place of the number of its call.
  func naming(_ progress: DialogProgress) -> DialogProgress {
    var progress = progress
    progress.command = progress.command.flatMap(Int.init).flatMap { pending[$0]?.command }
    return progress
  }

  /// Nothing is reported any more.
  /// - Returns: the `id` of each command that waits, in order.
  mutating func removeAll() -> [String] {
    defer { pending = [:] }
    return pending.sorted { $0.key < $1.key }.compactMap(\.value.command)
  }
}

extension TuyaCloudEvent {
  /// The event for a program, whole.
  var json: JSONValue {
    .object([
      "type": .integer(Int(type.rawValue)), "eventId": id.isEmpty ? nil : .string(id),
      "time": time.map { .number(String($0)) }, "data": data, "userData": userData,
    ])
  }
}

extension TuyaDataKind {
  /// The kind of content to display.
  var mediaKind: DialogMedia.Kind {
    switch self {
    case .video: .video
    case .audio: .audio
    case .image: .image
    case .file, .text: .file
    }
  }
}
