public import MillraceCore
internal import MillraceJSON

/// `dialog.picture`: sends an image to a service that asks for one.
///
/// - In `in`: JPEG; the latest is kept. Without a link no image is sent, and every request is reported as `noPicture`.
/// - In `service`: the events of a service node. A `command` event with the name in `command` is a request; service nodes post it when it
///   may be answered.
/// - Out `control`: `{"command":"ask","text":…,"images":[{"base64":…}]}` for `dialog.turn` or a service.
/// - A JPEG that declares more than `maxPixels` is discarded: a few bytes of it may take gigabytes to decode.
/// - Lane `bulk`; does not allocate. One image is copied per request.
public struct DialogPicture: Node, ~Copyable {
  private static var pictureInput: Int { 0 }
  private static var serviceInput: Int { 1 }

  private enum Event: Int {
    case shown, noPicture, tooLarge
  }

  /// Bytes around the image and the text.
  private static let frameBytes = 128

  public static let contract = NodeContract(
    "dialog.picture", "sends the latest image to a service that asks for one",
    text: """
      A service requests an image with a command, such as Bailian's visual_qa; the answer is a question with the latest image. Link \
      the output to dialog.turn, or to the service itself.
      """,
    inputs: [
      PortContract("in", .kind(.jpeg), text: "images, of which the latest is sent", required: false),
      PortContract("service", .kind(.event), text: "events of the service"),
    ],
    outputs: [PortContract("control", .kind(.event), text: "questions with an image")],
    parameters: [
      ParameterContract("command", .string, default: "visual_qa", text: "the command that requests an image"),
      ParameterContract(
        "text", .string, default: "", text: "the text of the question; empty: the user's own words count"),
      ParameterContract(
        "maxPixels", .integer(1...PictureHeader.maxDecodablePixels), unit: "px",
        default: .integer(PictureHeader.defaultMaxPixels),
        text: "the largest image that is sent, width times height as declared in its header"),
    ],
    events: [
      EventContract("shown", text: "an image was sent with a question: `bytes` of the JPEG"),
      EventContract("noPicture", text: "the service requested an image and there is none: `count` so far"),
      EventContract(
        "tooLarge",
        text: """
          an image declares more than `maxPixels` and was discarded, the first in a row: `width`, `height`; put video.scale before it
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

  /// The name of the request, as JSON with quotes.
  private let wanted: [UInt8]
  /// The JSON before and after the image.
  private let head: [UInt8]
  private static let tail = Array(#""}]}"#.utf8)
  private let mostPixels: Int
  private var newest: Packet?
  private var misses = 0
  /// The image before was too large.
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
      // The image input has no end of its own.
      return ports.isOver(Self.serviceInput) ? .ended : .done
    }
    if isRequest(packet) { try send(&ports) }
    return .again
  }

  /// Keeps an image, unless it is too large.
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

  private func isRequest(_ packet: consuming Packet) -> Bool {
    let event = EventPeek(packet.samples(of: UInt8.self))
    return event.has("event", "command") && event.equals("name", wanted.span)
  }

  private mutating func send(_ ports: inout Ports) throws(NodeFault) {
    guard let picture = newest.take() else {
      misses += 1
      let count = misses
      return ports.post(Event.noPicture.rawValue) { $0.field("count", count) }
    }
    let count = Int(picture.byteCount)
    ports.emit(try question(with: picture, &ports), to: 0)
    ports.post(Event.shown.rawValue) { $0.field("bytes", count) }
    // It may be requested again before the next one arrives.
    newest = consume picture
  }

  private func question(with picture: borrowing Packet, _ ports: inout Ports) throws(NodeFault) -> Packet {
    let bytes = picture.samples(of: UInt8.self)
    var packet = try ports.makePacket(
      0, bytes: head.count + (bytes.count + 2) / 3 * 4 + Self.tail.count, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    var index = 0
    for byte in head { index = Self.put(byte, at: index, &target) }
    index = Self.encode(bytes, at: index, &target)
    for byte in Self.tail { index = Self.put(byte, at: index, &target) }
    return packet
  }

  private static func put(_ byte: UInt8, at index: Int, _ target: inout MutableSpan<UInt8>) -> Int {
    target[index] = byte
    return index + 1
  }

  /// Base64 with padding, RFC 4648 section 4. Returns the index after it.
  private static func encode(_ bytes: Span<UInt8>, at start: Int, _ target: inout MutableSpan<UInt8>) -> Int {
    var position = start
    for first in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - first)
      var group: UInt32 = 0
      for index in 0..<3 { group = group << 8 | (index < count ? UInt32(bytes[first + index]) : 0) }
      for index in 0..<4 {
        let digit = UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * index)) & 63
        position = put(index <= count ? letter(digit) : UInt8(ascii: "="), at: position, &target)
      }
    }
    return position
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
