internal import MillraceDialog
internal import MillraceNet

/// Events, texts, audio and images on their way to the node, while its queues have no room. On the network thread.
struct DownlinkBacklog: Sendable {
  /// The most audio of a reply that is held here; a reply arrives faster than real time.
  private static let maxAudioBytes = 16 << 20
  /// The most images of replies that are held here.
  private static let maxImageBytes = 16 << 20
  private static let maxEvents = 1_000
  /// The longest text of a reply that is put together from its parts, in bytes; what exceeds it is only in the events.
  private static let maxTextBytes = 1 << 20

  private let eventBytes: Int
  private var events = ByteBacklog()
  private var audio = ByteBacklog()
  private var images = ByteBacklog()
  /// The parts so far of a reply that comes in parts, and its round.
  private var text = ""
  private var round: String?

  init(eventBytes: Int) { self.eventBytes = eventBytes }

  var isEmpty: Bool { events.isEmpty && audio.isEmpty && images.isEmpty }

  /// True when so much waits that nothing more should be read.
  var isFull: Bool {
    audio.bytes > Self.maxAudioBytes || images.bytes > Self.maxImageBytes || events.count > Self.maxEvents
  }

  mutating func append(_ event: DialogEvent) {
    events.append(ServiceExchange.In.event, EventRecord.bytes(event, limit: eventBytes))
    switch event {
    case .reply(let reply): append(reply)
    case .interrupted, .state(.thinking), .state(.closed): text = ""
    default: break
    }
  }

  /// The whole text of a reply, when it is there.
  private mutating func append(_ reply: DialogReply) {
    if reply.mode == .replace || reply.round != round { text = "" }
    round = reply.round
    if text.utf8.count + reply.text.utf8.count <= Self.maxTextBytes { text += reply.text }
    guard reply.isFinal else { return }
    for piece in Self.pieces(text, maxBytes: eventBytes) { events.append(ServiceExchange.In.text, piece) }
    text = ""
  }

  /// The address of the stream with replies, between the events before and after it.
  mutating func append(stream address: String?) {
    events.append(ServiceExchange.In.stream, Array((address ?? "").utf8))
  }

  mutating func append(audio bytes: [UInt8], _ kind: UInt8) {
    var rest = bytes[...]
    repeat {
      let piece = Array(rest.prefix(ServiceExchange.audioBytes))
      rest = rest.dropFirst(piece.count)
      audio.append(kind, piece)
    } while !rest.isEmpty
  }

  /// The path of a received file, between the events before and after it.
  mutating func append(file path: String) { events.append(ServiceExchange.In.file, Array(path.utf8)) }

  /// An image, in pieces of which the first begins with its size.
  mutating func append(image bytes: [UInt8]) {
    var rest = bytes[...]
    var kind = ServiceExchange.In.image
    var head = [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: bytes.count >> $0) }
    repeat {
      let piece = rest.prefix(ServiceExchange.pieceBytes)
      rest = rest.dropFirst(piece.count)
      images.append(kind, head + piece)
      (kind, head) = (ServiceExchange.In.imagePart, [])
    } while !rest.isEmpty
  }

  mutating func discardAudio() { audio.clear() }

  /// Moves what there is room for. Returns true when something was moved.
  mutating func move(to exchange: ServiceExchange) -> Bool {
    let hasEvents = events.move(to: exchange.events)
    let hasAudio = audio.move(to: exchange.audio)
    let hasImages = images.move(to: exchange.images)
    return hasEvents || hasAudio || hasImages
  }

  /// Splits a text into pieces of at most `maxBytes`, each of whole characters.
  private static func pieces(_ text: String, maxBytes: Int) -> [[UInt8]] {
    let bytes = Array(text.utf8)
    var result: [[UInt8]] = []
    var start = 0
    while start < bytes.count {
      var end = min(start + maxBytes, bytes.count)
      // Bytes 10xxxxxx continue a character.
      while end < bytes.count && bytes[end] & 0xC0 == 0x80 { end -= 1 }
      result.append(Array(bytes[start..<end]))
      start = end
    }
    return result
  }
}
