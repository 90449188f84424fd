public import MillraceCore

/// `dialog.picture`: shows a service what it asks to see.
///
/// - In `in`: JPEG; the newest is kept. Without a link there, nothing is shown, and every wish is told by `noPicture`.
/// - In `service`: the events of a service node. A `command` with the name `command` is a wish; services tell of one when it
///   may be answered.
/// - Out `control`: `{"command":"ask","text":…,"images":[{"base64":…}]}` for `dialog.turn` or a service.
/// - A JPEG that declares more than `maxPixels` is left out: a few bytes of it may take gigabytes to decode wherever it goes.
/// - Lane `bulk`; no heap. One picture is copied once a wish.
public struct DialogPicture: Node, ~Copyable {
  private static var pictureInput: Int { 0 }
  private static var serviceInput: Int { 1 }

  private enum Event: Int {
    case shown, noPicture, tooLarge
  }

  /// Bytes around the picture, beside the text.
  private static let frameBytes = 128

  public static let contract = NodeContract(
    "dialog.picture", "shows a service the newest picture when it asks to see something",
    text: """
      A service that wants to see says so by a command, such as Bailian's visual_qa; the answer is a question with the newest \
      picture. Put dialog.turn behind it, or the service itself.
      """,
    inputs: [
      PortContract("in", .kind(.jpeg), text: "pictures, of which the newest is shown", required: false),
      PortContract("service", .kind(.event), text: "events of the service"),
    ],
    outputs: [PortContract("control", .kind(.event), text: "questions with a picture")],
    parameters: [
      ParameterContract("command", .string, default: "visual_qa", text: "which command asks for a picture"),
      ParameterContract(
        "text", .string, default: "", text: "the question's words; none: the user's own count"),
      ParameterContract(
        "maxPixels", .integer(1...PictureHeader.mostEver), unit: "px",
        default: .integer(PictureHeader.mostPixels),
        text: "the largest picture that is shown, width times height, as its header declares it"),
    ],
    events: [
      EventContract("shown", text: "a picture goes with a question: `bytes` of the JPEG"),
      EventContract("noPicture", text: "the service asks for a picture and there is none: `count` so far"),
      EventContract(
        "tooLarge",
        text: """
          a picture declares more than `maxPixels` and is left out, the first in a row: `width`, `height`; put video.scale before it
          """),
    ],
    lane: .bulk, drive: .itself,
    asynchronousPaths: [
      AsynchronousPath(from: "in", to: "control"), AsynchronousPath(from: "service", to: "control"),
    ],
    examples: [
      #"{ "type": "dialog.picture" }"#,
      #"{ "type": "dialog.picture", "command": "visual_qa", "text": "what is this?" }"#,
    ],
    resolve: { resolution in
      let picture = resolution.inputs["in"]?.packetBytes ?? 0
      let text = Self.head(resolution.parameters.string("text")).count
      resolution.outputs["control"] = OutputShape(
        .event, packetDuration: nil,
        packetBytes: (picture + 2) / 3 * 4 + text + frameBytes)
    })

  /// The command whose name is waited for, as it stands in an event, with its quotes.
  private let wanted: [UInt8]
  /// What stands before the picture, and behind it.
  private let head: [UInt8]
  private static let tail = Array(#""}]}"#.utf8)
  private let mostPixels: Int
  private var newest: Packet?
  private var misses = 0
  /// The picture before was too large.
  private var isTooLarge = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    wanted = Array(JSONValue.string(setup.parameters.string("command")).text.utf8)
    head = Self.head(setup.parameters.string("text"))
    mostPixels = setup.parameters.integer("maxPixels")
    newest = nil
  }

  private static func head(_ text: String) -> [UInt8] {
    Array(#"{"command":"ask","text":\#(JSONValue.string(text).text),"images":[{"base64":""#.utf8)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if ports.hasPacket(Self.pictureInput), let picture = ports.next(Self.pictureInput) {
      take(picture, &ports)
      return .again
    }
    guard ports.hasPacket(Self.serviceInput), let packet = ports.next(Self.serviceInput) else {
      // Pictures have no end of their own.
      return ports.isOver(Self.serviceInput) ? .ended : .done
    }
    if isWish(packet) { try show(&ports) }
    return .again
  }

  /// Keeps a picture, unless it is too large.
  private mutating func take(_ picture: consuming Packet, _ ports: inout Ports) {
    let header = PictureHeader(picture.samples(of: UInt8.self))
    guard let header, header.pixels > mostPixels else {
      isTooLarge = false
      newest = consume picture
      return
    }
    guard !isTooLarge else { return }
    isTooLarge = true
    ports.post(Event.tooLarge.rawValue) { event in
      event.field("width", header.width)
      event.field("height", header.height)
    }
  }

  private func isWish(_ packet: consuming Packet) -> Bool {
    let event = EventGlance(packet.samples(of: UInt8.self))
    return event.has("event", "command") && event.equals("name", wanted.span)
  }

  private mutating func show(_ ports: inout Ports) throws(NodeFault) {
    guard let picture = newest.take() else {
      misses += 1
      let count = misses
      return ports.post(Event.noPicture.rawValue) { $0.field("count", count) }
    }
    let count = Int(picture.byteCount)
    ports.emit(try question(with: picture, &ports), to: 0)
    ports.post(Event.shown.rawValue) { $0.field("bytes", count) }
    // It may be asked for again before the next one comes.
    newest = consume picture
  }

  private func question(with picture: borrowing Packet, _ ports: inout Ports) throws(NodeFault) -> Packet {
    let bytes = picture.samples(of: UInt8.self)
    var packet = try ports.makePacket(
      0, bytes: head.count + (bytes.count + 2) / 3 * 4 + Self.tail.count, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    var place = 0
    for byte in head { place = Self.put(byte, at: place, &target) }
    place = Self.encode(bytes, at: place, &target)
    for byte in Self.tail { place = Self.put(byte, at: place, &target) }
    return packet
  }

  private static func put(_ byte: UInt8, at place: Int, _ target: inout MutableSpan<UInt8>) -> Int {
    target[place] = byte
    return place + 1
  }

  /// Base64 with padding, RFC 4648 section 4. Answers the place behind it.
  private static func encode(_ bytes: Span<UInt8>, at start: Int, _ target: inout MutableSpan<UInt8>) -> Int {
    var place = start
    for first in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - first)
      var group: UInt32 = 0
      for index in 0..<3 { group = group << 8 | (index < count ? UInt32(bytes[first + index]) : 0) }
      for index in 0..<4 {
        let digit = UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * index)) & 63
        place = put(index <= count ? letter(digit) : UInt8(ascii: "="), at: place, &target)
      }
    }
    return place
  }

  private static func letter(_ digit: UInt8) -> UInt8 {
    switch digit {
    case 0..<26: UInt8(ascii: "A") + digit
    case 26..<52: UInt8(ascii: "a") + digit - 26
    case 52..<62: UInt8(ascii: "0") + digit - 52
    case 62: UInt8(ascii: "+")
    default: UInt8(ascii: "/")
    }
  }
}
