internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceService

/// What a connection knows of one of its sessions: calls become packets, and packets become events. On the connection's loop; pure but for
/// the inbox.
struct TuyaLine {
  /// What a call asks the connection to send.
  enum Order: Sendable {
    /// A packet in its order, and roughly how large it is.
    case packet(TuyaPacket, bytes: Int)
    /// A packet that ends the data of an event, behind its pictures and files.
    case last(TuyaPacket, event: String)
    /// An event is broken off by this packet, or over for the cloud already: its pictures and files are discarded.
    case breaks(TuyaPacket?, event: String)
    /// A picture or a file.
    case bulk(TuyaBulk, TuyaOutbox.Source, event: String?, call: Int)
    /// There is nothing to send: another session has sent the same.
    case sent(call: Int)
  }

  let number: Int
  let settings: TuyaWireSettings
  let inbox: TuyaInbox
  private let dialect: TuyaDialect

  /// Of the latest token, for the first notice.
  var terms = TuyaTerms()
  /// Files that are being sent, by their calls.
  var files: [Int: TuyaFileReader] = [:]
  private var session: String?
  private var channels = TuyaChannels(sends: [], receives: [])
  /// The event that was begun last, and not ended.
  private var event: String?
  private var voice: TuyaVoiceStream
  private var voiceID: UInt16?
  /// A frame of the present stream was not valid, and that was said.
  private var hasComplained = false
  /// The channels on which a video of the present event has begun.
  private var videos: Set<UInt16> = []
  private var reported: [Int: Int] = [:]
  private var downlink: TuyaDownlink

  init(_ number: Int, _ settings: TuyaWireSettings, _ dialect: TuyaDialect, _ inbox: TuyaInbox) {
    self.number = number
    self.settings = settings
    self.dialect = dialect
    self.inbox = inbox
    voice = TuyaVoiceStream(settings.voice)
    downlink = TuyaDownlink(dialect, settings)
  }

  /// Reports the end; nothing follows.
  func end(_ error: DialogError) { _ = inbox.add([.closed(error)]) }

  // MARK: The session

  /// True from its creation to its end.
  var isOpen: Bool { session != nil }

  mutating func create(
    _ creation: TuyaCreation, _ grant: TuyaGrant, _ channels: TuyaChannels
  ) -> TuyaPacket {
    reset()
    session = creation.id
    self.channels = channels
    downlink.begin(channels)
    var attributes = TuyaAttributes()
    attributes.add(.bizCode, UInt64(grant.terms.bizCode))
    attributes.add(.bizTag, grant.terms.bizTag)
    attributes.add(.sessionID, creation.id)
    add(creation.userData, to: &attributes)
    attributes.add(.agentToken, grant.token.text)
    return TuyaPacket(
      .sessionNew, attributes,
      .sessionIDs(send: channels.sends.map(\.id), receive: channels.receives.map(\.id)))
  }

  mutating func close(_ status: TuyaStatus) -> TuyaPacket? {
    guard let session else { return nil }
    reset()
    var attributes = TuyaAttributes()
    attributes.add(.sessionID, session)
    attributes.add(.sessionCloseCode, UInt64(status.rawValue))
    return TuyaPacket(.sessionClose, attributes)
  }

  private mutating func reset() {
    session = nil
    channels = TuyaChannels(sends: [], receives: [])
    event = nil
    voice = TuyaVoiceStream(settings.voice)
    voiceID = nil
    videos = []
    files = [:]
    reported = [:]
    downlink = TuyaDownlink(dialect, settings)
  }

  /// The number of a channel to the cloud.
  func id(of channel: TuyaChannelName) throws(DialogError) -> UInt16 {
    guard isOpen else { throw .tuya(.invalidSession, "there is no session", scope: .command) }
    return try channels.id(of: channel)
  }

  // MARK: The user's audio

  /// Takes a frame of sound.
  /// - Returns: the packet that is full with it; nil: none is.
  mutating func voice(
    _ frame: [UInt8], at now: UInt64, _ streams: inout TuyaSharedStreams
  ) throws(DialogError) -> TuyaPacket? {
    guard isOpen, let id = voiceID else { return nil }
    if TuyaSharedStreams.isShared(id), !streams.takes(frame, of: number, on: id) { return nil }
    var frame = frame
    if case .opus = settings.voice.coding {
      guard let padded = TuyaOpusFrame.padded(frame, to: settings.voice.frameBytes) else {
        guard !hasComplained else { return nil }
        hasComplained = true
        throw .tuya(
          .invalidPacket,
          "an Opus packet of \(frame.count) bytes was dropped: all must have \(settings.voice.frameBytes); use that bit rate",
          scope: .command)
      }
      frame = padded
    }
    return voice.add(frame, at: now).map { packet($0, id) }
  }

  private func packet(_ part: TuyaVoiceStream.Part, _ id: UInt16) -> TuyaPacket {
    var attributes = TuyaAttributes()
    if part.flag.begins { settings.voice.parameters.add(to: &attributes, dialect) }
    var head = TuyaMediaHead(id, part.flag, milliseconds: part.time)
    head.microseconds = part.position
    return TuyaPacket(.audio, attributes, .media(head, part.bytes))
  }

  private mutating func endVoice(isCut: Bool, _ streams: inout TuyaSharedStreams) -> [Order] {
    guard let id = voiceID else { return [] }
    voiceID = nil
    let part = voice.end(isCut: isCut)
    if TuyaSharedStreams.isShared(id), !streams.end(number, on: id) { return [] }
    return part.map { [.packet(packet($0, id), bytes: $0.bytes.count)] } ?? []
  }

  /// The data id of sound that other sessions may take, too; nil: there is no stream, or it is this session's own.
  var sharedVoice: UInt16? { voiceID.flatMap { TuyaSharedStreams.isShared($0) ? $0 : nil } }

  /// Ends the stream of sound that is sent; another begins with the next frame. Nil: none has begun.
  mutating func restartVoice() -> (packet: TuyaPacket, bytes: Int)? {
    guard let id = voiceID, voice.hasBegun, let part = voice.end(isCut: false) else { return nil }
    return (packet(part, id), part.bytes.count)
  }

  /// What ends the streams that this session has sent for others, too.
  func lastVoice(led: [UInt16]) -> [TuyaPacket] {
    guard let id = voiceID, led.contains(id), voice.hasBegun else { return [] }
    return [TuyaPacket(.audio, TuyaAttributes(), .media(TuyaMediaHead(id, .end), []))]
  }

  // MARK: Calls

  /// What to send for a call.
  /// - Parameter now: milliseconds since 1970.
  /// - Throws: why it cannot be sent, with the vendor's code.
  mutating func orders(
    for call: TuyaCall, at now: UInt64, _ streams: inout TuyaSharedStreams
  ) throws(DialogError) -> [Order] {
    guard isOpen else { throw .tuya(.invalidSession, "there is no session", scope: .command) }
    switch call {
    case .requestToken, .createSession, .closeSession, .heldImage: return []
    case .startEvent(let id, let userData):
      // The cloud has ended the one before.
      let orders: [Order] = event.map { [.breaks(nil, event: $0)] } ?? []
      event = id
      // A stream belongs to its event, however that has ended.
      videos = []
      return orders + [.packet(eventPacket(.start, id, userData), bytes: 0)]
    case .beginVoice:
      guard let channel = channels.sends.first(where: { $0.kind == .audio }) else {
        throw .tuya(.invalidChannel, "the agent takes no audio; its token does not list it", scope: .command)
      }
      voiceID = channel.id
      hasComplained = false
      return []
    case .endVoice(let isCut): return endVoice(isCut: isCut, &streams)
    case .endPayloads(let id, let channel, let userData):
      return try endPayloads(id, channel, userData, at: now)
    case .endEvent(let id, let userData):
      if event == id { event = nil }
      return [.last(eventPacket(.end, id, userData, time: now), event: id)]
    case .breakEvent(let id, let userData):
      if event == id { event = nil }
      downlink.breakOff()
      return [.breaks(eventPacket(.chatBreak, id, userData), event: id)]
    case .event(let type, let id, let data, let userData):
      let packet = eventPacket(type, id, userData, data: data?.bytes ?? [])
      return [.packet(packet, bytes: data?.bytes.count ?? 0)]
    case .text(let text, let channel, let userData):
      return try self.text(text, channel, userData, at: now, &streams)
    case .image(let bytes, let format, let channel, let userData, let call):
      return try image(bytes, format, channel, userData, call, at: now, &streams)
    case .file(_, let name, let channel, let userData, let call):
      guard let file = files[call] else {
        throw .tuya(.unreadableFile, "the file is not open", scope: .command)
      }
      let parameters = TuyaFileParameters(
        format: TuyaFileFormat.number(of: name ?? file.name), name: name ?? file.name)
      let bulk = bulk(.file(parameters), try id(of: channel), userData, at: now)
      return [.bulk(bulk, .file(total: file.count), event: event, call: call)]
    }
  }

  private func eventPacket(
    _ type: TuyaEventType, _ id: String, _ userData: JSONValue?, time: UInt64? = nil, dataID: UInt16? = nil,
    data: [UInt8] = []
  ) -> TuyaPacket {
    var attributes = TuyaAttributes()
    attributes.add(.sessionID, session ?? "")
    attributes.add(.eventID, id)
    if let time { attributes.add(.eventTime, time) }
    var userData = userData
    if let dataID {
      if dialect == .v1 {
        let number: JSONValue = .object(["payloadsEndDataId": .integer(Int(dataID))])
        userData = number.merging(userData)
      } else {
        attributes.add(.payloadsEndID, UInt64(dataID))
      }
    }
    add(userData, to: &attributes)
    return TuyaPacket(.event, attributes, .event(type, data))
  }

  private mutating func endPayloads(
    _ event: String, _ channel: TuyaChannelName, _ userData: JSONValue?, at now: UInt64
  ) throws(DialogError) -> [Order] {
    let id = try id(of: channel)
    var orders: [Order] = []
    if channel.kind == .video, videos.remove(id) != nil {
      let head = TuyaMediaHead(id, .end, milliseconds: now)
      orders.append(.last(TuyaPacket(.video, TuyaAttributes(), .media(head, [])), event: event))
    }
    orders.append(.last(eventPacket(.payloadsEnd, event, userData, dataID: id), event: event))
    return orders
  }

  private func text(
    _ text: String, _ channel: TuyaChannelName, _ userData: JSONValue?, at now: UInt64,
    _ streams: inout TuyaSharedStreams
  ) throws(DialogError) -> [Order] {
    guard !text.isEmpty else { throw .tuya(.invalidPacket, "the text is empty", scope: .command) }
    try TuyaQuestion.check(text)
    let (id, bytes) = (try id(of: channel), Array(text.utf8))
    guard !streams.repeats(bytes, of: number, on: id, at: now) else { return [] }
    var attributes = TuyaAttributes()
    add(userData, to: &attributes)
    let packet = TuyaPacket(.text, attributes, .media(TuyaMediaHead(id, .onlyOne), bytes))
    return [.packet(packet, bytes: bytes.count)]
  }

  private func image(
    _ bytes: [UInt8], _ format: TuyaImageFormat, _ channel: TuyaChannelName, _ userData: JSONValue?,
    _ call: Int, at now: UInt64, _ streams: inout TuyaSharedStreams
  ) throws(DialogError) -> [Order] {
    guard !bytes.isEmpty else { throw .tuya(.invalidPacket, "the image is empty", scope: .command) }
    try TuyaPicture.check(size: bytes.count)
    let id = try id(of: channel)
    guard !streams.repeats(bytes, of: number, on: id, at: now) else { return [.sent(call: call)] }
    let (width, height) = TuyaImageSize.read(bytes) ?? (0, 0)
    let kind: TuyaBulk.Kind
    if channel.kind == .video {
      let parameters = TuyaVideoParameters(
        codec: TuyaVideoParameters.mjpeg, width: width, height: height, fps: 0)
      kind = .video(parameters, isFirst: !videos.contains(id))
    } else {
      kind = .image(TuyaImageParameters(format: Int(format.rawValue), width: width, height: height))
    }
    return [.bulk(bulk(kind, id, userData, at: now), .bytes(bytes), event: event, call: call)]
  }

  /// A picture or a file waits to be sent.
  mutating func noteQueued(_ bulk: TuyaBulk) {
    if bulk.isVideo { videos.insert(bulk.dataID) }
  }

  private func bulk(
    _ kind: TuyaBulk.Kind, _ id: UInt16, _ userData: JSONValue?, at now: UInt64
  ) -> TuyaBulk {
    TuyaBulk(
      kind: kind, dataID: id, time: now, userData: userData.map { TuyaUserData.bytes($0, dialect) },
      dialect: dialect)
  }

  private func add(_ userData: JSONValue?, to attributes: inout TuyaAttributes) {
    guard let userData else { return }
    attributes.add(.userData, bytes: TuyaUserData.bytes(userData, dialect))
  }

  // MARK: Progress

  /// Reports of progress go out in steps of this many bytes, besides the last.
  private static let step = 65_536

  /// True when so much was sent since the last report that it is reported to the session.
  mutating func isNews(_ progress: TuyaOutbox.Progress) -> Bool {
    if progress.bytes >= progress.total {
      reported[progress.call] = nil
      return true
    }
    guard progress.bytes - reported[progress.call, default: 0] >= Self.step else { return false }
    reported[progress.call] = progress.bytes
    return true
  }

  // MARK: Packets of the cloud

  /// What a packet means for the session.
  /// - Returns: its events, files to store, and whether the cloud has closed the session.
  mutating func take(
    _ packet: TuyaPacket
  ) -> (events: [ServiceEvent<TuyaNotice>], files: [TuyaReceivedFile], isClosed: Bool) {
    let (events, files) = downlink.take(packet)
    return (events, files, packet.type == .sessionClose)
  }

  /// The cloud has closed the session.
  mutating func closed() { reset() }
}

extension TuyaVoice {
  /// The parameters of its stream: four numbers for PCM, eight for Opus, whose frames have one size.
  var parameters: TuyaAudioParameters {
    switch coding {
    case .pcm: TuyaAudioParameters(.pcm, rate: Self.rate)
    case .opus(let bitRate):
      TuyaAudioParameters(
        .opus, rate: Self.rate, bitRate: bitRate, frameMilliseconds: frame, frameBytes: frameBytes)
    }
  }
}
