internal import MillraceDoubles
internal import MillraceJSON

/// An event that a client has started and not ended: what it has sent, and whether it was in order.
struct OpenEvent {
  let id: String
  /// The cloud looks for the end of speech.
  let hasVAD: Bool
  /// The event never ends: the cloud divides it into rounds, and a voice interrupts a reply.
  let isLong: Bool
  private let isV1: Bool
  /// The stream of each data id that is open.
  private(set) var streams: [UInt16: StreamParameters] = [:]
  /// Data ids that were used, and those whose data has ended.
  private(set) var used: Set<UInt16> = []
  private(set) var closed: Set<UInt16> = []
  private(set) var texts = 0, images = 0
  var ear: StreamEar?
  /// When the packets of the present stream of sound are due.
  var timing = FrameTiming()
  /// The cloud has told the client that it heard the end.
  var hasEndedByVAD = false
  /// Milliseconds of sound since.
  private var soundBehindVAD = 0
  /// The latest image's time, by the client's clock.
  private var imageTime: UInt64 = 0
  private var hasToldOfImage = false, hasToldOfSound = false

  /// Milliseconds of sound behind a ServerVAD from which on the client has ignored it: what is on its way is less.
  static let mostBehindVAD = 60_000
  /// Milliseconds by which sound may be older than an image before it: a packet carries as much.
  private static let packet: UInt64 = 300
  /// The vendor's limit for an image.
  private static let largestImage = 1_000_000

  init(_ id: String, _ attributes: JSONValue?, isV1: Bool) {
    self.id = id
    self.isV1 = isV1
    hasVAD = attributes?["asr.enableVad"]?.bool ?? false
    isLong = hasVAD && (attributes?["processing.interrupt"]?.bool ?? false)
  }

  var hasSound: Bool { ear != nil }
  var isEmpty: Bool { used.isEmpty }
  /// True: the sound of the event is under way.
  var isHearing: Bool { streams.values.contains { if case .audio = $0 { true } else { false } } }
  var openChannels: [UInt16] { Array(streams.keys) }

  /// All data of an id was sent.
  mutating func end(_ channel: UInt16) { closed.insert(channel) }

  /// Takes a packet, and returns what is wrong with it. With a violation it is not used.
  mutating func take(_ media: CloudMedia, _ parameters: StreamParameters?) -> Violation? {
    if let problem = check(media, parameters) { return problem }
    used.insert(media.channel)
    switch media.flag {
    case .onlyOne: break
    case .start:
      if let parameters {
        streams[media.channel] = parameters
      } else {
        streams[media.channel] = .file(payload: 0, format: 0, name: "")
      }
    case .streaming: break
    case .end: streams[media.channel] = nil
    }
    if case .audio(let format)? = parameters, media.flag.hasParameters {
      timing = FrameTiming()
      if ear == nil || ear?.format != format { ear = StreamEar(format) }
    }
    switch media.kind {
    case .text where media.flag.hasParameters: texts += 1
    case .image where media.flag.hasParameters: images += 1
    default: break
    }
    return nil
  }

  private mutating func check(_ media: CloudMedia, _ parameters: StreamParameters?) -> Violation? {
    let what = "\(media.kind.rawValue) on data id \(media.channel)"
    if closed.contains(media.channel) { return Violation("afterPayloadsEnd", "\(what) behind its end") }
    let isOpen = streams[media.channel] != nil
    switch media.flag {
    case .onlyOne, .start:
      if isOpen { return Violation("streamOpen", "\(what) begins within its stream") }
      if parameters == nil && media.kind != .text {
        return Violation("noParameters", "the first packet of \(what) says nothing of its format")
      }
    case .streaming, .end:
      if !isOpen { return Violation("noStream", "\(what) continues no stream") }
      if parameters != nil { return Violation("strayParameters", "\(what) has parameters within its stream") }
    }
    switch media.kind {
    case .audio: return check(sound: media, parameters)
    case .image: return check(image: media, parameters)
    case .text where media.flag == .onlyOne && media.data.isEmpty:
      return Violation("emptyText", "\(what) is empty")
    case .text where String(validating: media.data, as: UTF8.self) == nil:
      return Violation("badText", "\(what) is not UTF-8")
    default: return nil
    }
  }

  private mutating func check(sound media: CloudMedia, _ parameters: StreamParameters?) -> Violation? {
    if case .audio(let format)? = parameters, let problem = StreamEar.problem(format, isV1: isV1) {
      return problem
    }
    if media.time + Self.packet < imageTime, !media.data.isEmpty, !hasToldOfImage {
      hasToldOfImage = true
      return Violation("soundBehindPicture", "sound waited \(imageTime - media.time) ms behind a picture")
    }
    guard hasEndedByVAD, !isLong, let ear, !media.data.isEmpty, !hasToldOfSound else { return nil }
    soundBehindVAD += ear.milliseconds(of: media.data)
    guard soundBehindVAD > Self.mostBehindVAD else { return nil }
    hasToldOfSound = true
    return Violation("soundAfterVAD", "\(soundBehindVAD) ms of sound came behind the ServerVAD")
  }

  private mutating func check(image media: CloudMedia, _ parameters: StreamParameters?) -> Violation? {
    imageTime = max(imageTime, media.time)
    if media.data.count > Self.largestImage {
      return Violation("largeImage", "an image of \(media.data.count) bytes")
    }
    guard media.flag == .onlyOne, case .image(let payload, let format, _, _)? = parameters, payload == 0
    else { return nil }
    let heads: [Int: [UInt8]] = [1: [0xFF, 0xD8], 2: [0x89, 0x50]]
    guard let head = heads[format], media.data.starts(with: head) else {
      return Violation("notAnImage", "an image is not of format \(format)")
    }
    return nil
  }
}
