internal import MillraceDialog
internal import MillraceJSON
internal import MillraceService

/// The cloud's packets of one session, as its events. Pure.
///
/// - Data on an id that the session has not listed is dropped; the first is reported.
/// - Sound is passed on as it comes. What belongs to a stream whose beginning was not seen, or which began before something was broken off,
///   is dropped.
/// - Images are put together; a JPEG is passed on, another format is stored as a file. Motion JPEG is passed on picture by picture.
/// - Texts are put together where they come in parts; files and other videos are stored under the cache folder.
struct TuyaDownlink: Sendable {
  typealias Event = ServiceEvent<TuyaNotice>

  /// A stream that has begun.
  private struct Stream: Sendable {
    var type: TuyaPacketType
    /// Nothing of it is passed on.
    var isStale = false
    /// It is passed on packet by packet.
    var isLive = false
    var bytes: [UInt8] = []
    var image: TuyaImageParameters?
    var file: TuyaFileParameters?
    var video: TuyaVideoParameters?
    var reported = 0
  }

  /// Reports of progress go out in steps of this many bytes.
  private static let step = 262_144

  private let dialect: TuyaDialect
  private let settings: TuyaWireSettings
  private var channels = TuyaChannels(sends: [], receives: [])
  private var hasReportedUnlisted = false
  private var streams: [UInt16: Stream] = [:]
  private var texts: [UInt16: TuyaTextAssembler] = [:]
  /// The last format of sound of each channel.
  private var formats: [UInt16: TuyaAudioParameters] = [:]
  private var files: [TuyaReceivedFile] = []

  init(_ dialect: TuyaDialect, _ settings: TuyaWireSettings) {
    self.dialect = dialect
    self.settings = settings
  }

  /// A session begins, with these channels.
  mutating func begin(_ channels: TuyaChannels) { self.channels = channels }

  /// Sound that has begun belongs to what was broken off.
  mutating func breakOff() {
    for id in streams.keys where streams[id]?.type == .audio { streams[id]?.isStale = true }
    texts = [:]
  }

  /// What a packet means.
  mutating func take(_ packet: TuyaPacket) -> (events: [Event], files: [TuyaReceivedFile]) {
    files = []
    let events = self.events(packet)
    return (events, files)
  }

  private mutating func events(_ packet: TuyaPacket) -> [Event] {
    let attributes = packet.attributes
    switch (packet.type, packet.content) {
    case (.sessionNew, _):
      var status = TuyaForms.status(attributes.integer(.sessionStatus)) ?? .ok
      // Both stand for success.
      if status.rawValue == 0 { status = .ok }
      return [.message(.sessionAnswered(status))]
    case (.sessionClose, _):
      return [
        .message(.sessionClosed(TuyaForms.status(attributes.integer(.sessionCloseCode)) ?? .closedByClient))
      ]
    case (.sessionState, _):
      guard let status = TuyaForms.status(attributes.integer(.sessionState)) else {
        return [.invalidMessage("the state of the session has no code")]
      }
      return [.message(.sessionState(status))]
    case (.event, .event(let type, let data)): return event(type, data, attributes)
    case (_, .media(let head, let bytes)): return media(packet.type, head, bytes, attributes)
    default: return [.message(.unknown(["packet": .integer(Int(packet.type.rawValue))]))]
    }
  }

  // MARK: Events

  private mutating func event(
    _ type: TuyaEventType, _ data: [UInt8], _ attributes: TuyaAttributes
  ) -> [Event] {
    var events: [Event] = []
    if type == .end || type == .chatBreak { events += finishTexts(isBroken: type == .chatBreak) }
    if type == .chatBreak { breakOff() }
    var event = TuyaCloudEvent(
      type, id: attributes.text(.eventID) ?? "", time: attributes.integer(.eventTime))
    if !data.isEmpty {
      do throws(JSONProblem) { event.data = try JSONValue(parsing: data) } catch {
        // Only the tools' events need it.
        if type == .mcpCommand { return events + [.invalidMessage("the data of an event are \(error)")] }
      }
    }
    // What is not valid has ended the connection: `TuyaPacketForm.check`.
    if let bytes = attributes.bytes(.userData), !bytes.isEmpty {
      event.userData = try? TuyaUserData.read(bytes, dialect)
    }
    return events + [.message(.event(event))]
  }

  // MARK: Media

  private mutating func media(
    _ type: TuyaPacketType, _ head: TuyaMediaHead, _ bytes: [UInt8], _ attributes: TuyaAttributes
  ) -> [Event] {
    // Each id may hold a stream of up to `largestFile` bytes: only those that were agreed on do.
    guard channels.kind(ofReceived: head.dataID) != nil else { return reportUnlisted(head.dataID) }
    if type == .text { return text(head, bytes) }
    if head.flag.begins {
      let (stream, events) = begin(type, head, attributes)
      streams[head.dataID] = stream
      return events + take(bytes, head)
    }
    return take(bytes, head)
  }

  private mutating func reportUnlisted(_ id: UInt16) -> [Event] {
    guard !hasReportedUnlisted else { return [] }
    hasReportedUnlisted = true
    return [.invalidMessage("data came on id \(id), which is none of the session's; it is dropped")]
  }

  private mutating func begin(
    _ type: TuyaPacketType, _ head: TuyaMediaHead, _ attributes: TuyaAttributes
  ) -> (Stream?, [Event]) {
    var stream = Stream(type: type)
    // Parameters that are not valid have ended the connection: `TuyaPacketForm.check`.
    switch type {
    case .audio:
      let format = (try? TuyaAudioParameters(attributes)) ?? formats[head.dataID]
      guard let format else { return (nil, [.invalidMessage("sound begins without its format")]) }
      formats[head.dataID] = format
      stream.isLive = true
      return (stream, [.message(.streamBegan(.audio(format)))])
    case .video:
      guard let format = try? TuyaVideoParameters(attributes) else {
        return (nil, [.invalidMessage("a video begins without its format")])
      }
      stream.video = format
      stream.isLive = format.codec == TuyaVideoParameters.mjpeg
      return (stream, stream.isLive ? [.message(.streamBegan(.video(format)))] : [])
    case .image: stream.image = try? TuyaImageParameters(attributes)
    default: stream.file = try? TuyaFileParameters(attributes)
    }
    return (stream, [])
  }

  private mutating func take(_ bytes: [UInt8], _ head: TuyaMediaHead) -> [Event] {
    guard var stream = streams[head.dataID] else { return [] }
    let isOver = head.flag.ends
    defer { streams[head.dataID] = isOver ? nil : stream }
    guard !stream.isStale else { return [] }
    if stream.isLive {
      var events: [Event] = []
      if !bytes.isEmpty { events.append(stream.type == .audio ? .audio(bytes) : .image(bytes)) }
      if isOver { events.append(.message(.streamEnded(stream.type == .audio ? .audio : .video))) }
      return events
    }
    guard stream.bytes.count + bytes.count <= settings.largestFile else {
      stream.isStale = true
      stream.bytes = []
      return [.invalidMessage("what was received has more than \(settings.largestFile) bytes; it is dropped")]
    }
    stream.bytes += bytes
    if isOver { return finish(stream) }
    guard stream.bytes.count - stream.reported >= Self.step else { return [] }
    stream.reported = stream.bytes.count
    return [.message(.progress(DialogProgress("download", bytes: stream.bytes.count)))]
  }

  /// An image, a file or a video is complete.
  private mutating func finish(_ stream: Stream) -> [Event] {
    var bytes = stream.bytes
    let form = TuyaPayloadForm(rawValue: stream.image?.payload ?? stream.file?.payload ?? 0)
    if form == .base64 {
      guard let text = String(validating: bytes, as: UTF8.self), let decoded = Base64.decode(text) else {
        return [.invalidMessage("what was received is not Base64; it is dropped")]
      }
      bytes = decoded
    }
    if form == .url {
      let kind: JSONValue = stream.type == .image ? "image" : "file"
      let address = String(decoding: bytes, as: UTF8.self)
      return [.message(.unknown(.object(["kind": kind, "url": .string(address)])))]
    }
    if stream.type == .image, TuyaImageFormat(of: bytes) == .jpeg {
      let format = stream.image ?? TuyaImageParameters(format: 1, width: 0, height: 0)
      return [
        .message(.streamBegan(.image(format))), .image(bytes), .message(.streamEnded(.image)),
      ]
    }
    let kind: TuyaDataKind =
      switch stream.type {
      case .image: .image
      case .video: .video
      default: .file
      }
    guard let folder = settings.cache else {
      return [
        .invalidMessage(
          "a \(kind.rawValue) of \(bytes.count) bytes was received and dropped; set \"cache\" to keep it")
      ]
    }
    files.append(
      TuyaReceivedFile(
        folder: folder, name: stream.file?.name, kind: kind,
        suffix: TuyaFileFormat.suffix(stream.video, of: bytes), bytes: bytes))
    return []
  }

  // MARK: Texts

  private mutating func text(_ head: TuyaMediaHead, _ bytes: [UInt8]) -> [Event] {
    var assembler = texts[head.dataID] ?? TuyaTextAssembler()
    defer { texts[head.dataID] = assembler }
    do throws(TuyaTextProblem) {
      return try assembler.take(bytes, head.flag).map { .message(.text($0)) }
    } catch { return [.message(.unreadableText(error.text))] }
  }

  /// An event has ended: a text without an end is complete.
  private mutating func finishTexts(isBroken: Bool) -> [Event] {
    var events: [Event] = []
    for id in texts.keys.sorted() {
      guard var assembler = texts.removeValue(forKey: id), !isBroken else { continue }
      do throws(TuyaTextProblem) {
        events += try assembler.finish().map { .message(.text($0)) }
      } catch { events.append(.message(.unreadableText(error.text))) }
    }
    return events
  }
}
