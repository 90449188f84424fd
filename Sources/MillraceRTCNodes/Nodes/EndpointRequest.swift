internal import MillraceCore
internal import MillraceJSON

/// What a packet at the input `address` of a node asks for.
enum EndpointRequest {
  /// A session with this endpoint.
  case begin(String)
  /// No session.
  case end
  /// Nothing: another event of a service.
  case nothing
  /// It cannot be understood. The text shows nothing of the address.
  case refused(String)

  /// Bytes of the longest address.
  static let longest = 4_096

  /// Reads a packet: an address as text, or an event of a service. Allocates for an address, and for an event that may be about one.
  init(_ packet: borrowing Packet, isEvent: Bool) {
    let content = packet.samples(of: UInt8.self)
    // A service's output of events may be linked as a whole: others than `stream` and `streamEnded` are not parsed.
    let isAboutStream = CommandPorts.contains(content, "\"stream")
    guard !isEvent || isAboutStream else {
      self = .nothing
      return
    }
    let count = content.count
    guard isEvent || count <= Self.longest else {
      self = .refused("an address has more than \(Self.longest) bytes")
      return
    }
    let bytes = content.indices.map { content[$0] }
    guard isEvent else {
      self.init(address: String(decoding: bytes, as: UTF8.self))
      return
    }
    guard let event = try? JSONValue(parsing: bytes), event.members != nil else {
      self = .refused(#"an event is not a JSON object; send {"event":"stream","url":"https://…"}"#)
      return
    }
    switch event["event"]?.string {
    case "stream":
      guard let url = event["url"], !url.isNull else {
        self = .end
        return
      }
      guard let text = url.string, text.utf8.count <= Self.longest else {
        self = .refused("an event's \"url\" is no address")
        return
      }
      self.init(address: text)
    case "streamEnded": self = .end
    default: self = .nothing
    }
  }

  /// An address may have white space around it.
  private init(address: String) {
    var text = Substring(address)
    while let first = text.first, first.isWhitespace { text.removeFirst() }
    while let last = text.last, last.isWhitespace { text.removeLast() }
    self = text.isEmpty ? .end : .begin(String(text))
  }
}
