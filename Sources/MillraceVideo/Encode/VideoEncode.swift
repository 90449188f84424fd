internal import MillraceAudio
public import MillraceCore

/// `video.encode`: encodes pictures to H.264 or VP8 for a live connection.
///
/// - Input `video`: raw pictures of any pixel type and size, scaled down to `maxWidth` by `maxHeight` with even sides. Input `control`:
///   events of a node of WebRTC and commands; it does not drive the node, and is read with the next picture.
/// - Output `out`: one packet for each picture, with its timestamp. Positions count the packets; a key frame has the flag `key`. H.264 is
///   in the byte stream format (Annex B), constrained baseline, with parameter sets in front of every key frame.
/// - Key frames: the first picture, every `keyInterval` by the pictures' times, and as asked for, at most every 300 ms.
/// - Bitrate: the lower of `bitrate` and what the network carries (`targetBitrate`). H.264 follows within the stream. A new VP8 encoder is
///   opened for a change of more than a sixth, after a second down and three seconds up, and begins with a key frame. So does a new size.
/// - A picture beyond `rate` is dropped, by the timestamps on a grid from the first one. One that is incomplete is dropped and counted, and
///   so is an encoded one beyond the packets' size: its successors could not be decoded, so that the next one is a key frame.
/// - No latency. Bulk lane: 7 ms for 1280x720 with `speed` `fast`. Allocates, as the libraries do.
@safe
public struct VideoEncode: ~Copyable, Node {
  private let coding: PictureCoding
  private let source: (pixel: PixelType, width: Int, height: Int)
  /// Pictures a second of the input, at most 240.
  private let sourceRate: Double
  private let packetBytes: Int
  private let control: EncoderControl?
  private let speed: EncoderSpeed
  private let threads: Int
  private var wishes: EncoderWishes
  private var encoder: LivePictureEncoder
  /// When the encoder was opened, by the pictures' times; nil before its first picture.
  private var openTime: Nanoseconds?
  private var grid = PictureGrid()
  private var wantsKey = true
  private var keyTime: Nanoseconds?
  private var position: Int64 = 0
  private var counts = Counts()
  private var damaged = CountedEvent()
  private var tooLarge = CountedEvent()
  private var isTold = false
  private let words = LastWords()

  /// Shortest time between two key frames: peers ask again while one is on its way.
  private static let keyPause = Nanoseconds.milliseconds(300)

  private struct Counts {
    var pictures = 0
    var keyFrames = 0
    var bytes = 0
    var damaged = 0
    var tooLarge = 0
  }

  /// The library's words for a failure; kept for `explain`.
  private final class LastWords { var text: String? }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .video(let width, let height, let pixel, let rate) = setup.inputFormat(),
      let shape = setup.outputs[0].shape
    else { throw NodeProblem("\"\(setup.name)\" takes only pictures") }
    let values = setup.parameters
    let wishes = EncoderWishes(values)
    let coding: PictureCoding = shape.format == .vp8 ? .vp8 : .h264
    let speed = EncoderSpeed(rawValue: values.string("speed")) ?? .fast
    let threads = values.integer("threads")
    let sourceRate = min(240, max(0.01, Double(rate.numerator) / Double(rate.denominator)))
    let encoder = try LivePictureEncoder(
      wishes.settings(
        coding, width: width, height: height, rate: sourceRate, speed: speed, threads: threads))
    // No member is read before all are set: Documentation/decisions.md, 52.
    self.coding = coding
    source = (pixel, width, height)
    self.sourceRate = sourceRate
    packetBytes = shape.packetBytes
    control = setup.inputs[1].isLinked ? EncoderControl(input: 1) : nil
    self.speed = speed
    self.threads = threads
    self.wishes = wishes
    self.encoder = encoder
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let control {
      let requests = control.take(&ports)
      follow(requests, &ports)
    }
    guard let picture = ports.next() else { return .done }
    reportOpening(&ports)
    let time = picture.timestamp
    guard isWhole(picture) else {
      noteDamage(picture, &ports)
      return .done
    }
    // A limit above the input's rate must not drop pictures that come a little early.
    let highest = sourceRate
    let limit = wishes.rate.flatMap { $0 < highest ? $0 : nil }
    guard grid.takes(time, rate: limit), ports.isLinked(output: 0) else { return .done }
    try encode(picture, at: time, &ports)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    report(&ports, isLast: true)
    let counts = counts
    ports.post(Event.encoded.rawValue) { event in
      event.field("pictures", counts.pictures)
      event.field("keyFrames", counts.keyFrames)
      event.field("bytes", counts.bytes)
    }
    return .ended
  }

  public mutating func receive(
    _ message: consuming ControlMessage, _ ports: inout Ports
  ) throws(NodeFault) {
    switch consume message {
    case .set(let parameter, let value): wishes.set(parameter, value)
    case .text(let packet):
      var requests = EncoderControl.Requests()
      EncoderControl.read(packet, into: &requests)
      follow(requests, &ports)
    case .duck: break
    case .resume: break
    }
  }

  private mutating func follow(_ requests: EncoderControl.Requests, _ ports: inout Ports) {
    if requests.wantsKey { wantsKey = true }
    wishes.follow(requests)
    for problem in requests.problems { ports.post(problem, as: Event.error.rawValue) }
  }

  // MARK: Encoding

  private func isWhole(_ picture: borrowing Packet) -> Bool {
    let needed = source.pixel.byteCount(width: source.width, height: source.height)
    return Int(picture.byteCount) >= needed
  }

  private mutating func noteDamage(_ picture: borrowing Packet, _ ports: inout Ports) {
    // The stand-in of a lost picture, or the end of an utterance.
    guard picture.byteCount > 0 else { return }
    counts.damaged += 1
    report(&ports)
  }

  private mutating func encode(
    _ picture: borrowing Packet, at time: Nanoseconds, _ ports: inout Ports
  ) throws(NodeFault) {
    try tune(at: time, &ports)
    if openTime == nil { openTime = time }
    let isKey = isKeyDue(time)
    let view = PictureView(
      picture.samples(of: UInt8.self), source.pixel, width: source.width, height: source.height)
    do throws(NodeFault) {
      guard try encoder.encode(view, at: time, asKey: isKey) else { return }
    } catch {
      words.text = LibraryMessage.describe(error.code)
      throw error
    }
    if encoder.isKey {
      keyTime = time
      wantsKey = false
    }
    guard encoder.byteCount <= packetBytes else {
      counts.tooLarge += 1
      // What follows refers to it.
      keyTime = nil
      report(&ports)
      return
    }
    try emit(picture, &ports)
  }

  private mutating func emit(_ picture: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: encoder.byteCount, of: HeldReply(of: picture))
    var target = packet.mutableSamples(of: UInt8.self)
    encoder.copy(into: &target)
    packet.timestamp = picture.timestamp
    packet.position = position
    packet.duration = 1
    if encoder.isKey {
      packet.flags.insert(.key)
      counts.keyFrames += 1
    }
    position += 1
    counts.pictures += 1
    counts.bytes += encoder.byteCount
    ports.emit(packet)
  }

  /// True if the picture of this time is to be a key frame.
  private func isKeyDue(_ time: Nanoseconds) -> Bool {
    guard let keyTime else { return true }
    let age = time &- keyTime
    if wishes.keyInterval > 0, age >= wishes.keyInterval { return true }
    // A clock that goes back must not hold a request up.
    return wantsKey && (age >= Self.keyPause || age < 0)
  }

  /// Applies the wishes in front of a picture: a bitrate within the stream, or a new encoder.
  private mutating func tune(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    let settings = wishes.settings(
      coding, width: source.width, height: source.height, rate: sourceRate, speed: speed, threads: threads)
    let present = encoder.settings
    if settings.size == present.size {
      // The library shares its bits by the rate with which it was opened.
      let scaled = Double(settings.bitrate) * present.rate / settings.rate
      let bitrate = min(Int(scaled), VideoEncode.bitrates.upperBound)
      if bitrate == encoder.bitrate || encoder.change(bitrate: bitrate) { return }
      guard isWorthOpening(bitrate, at: time) else { return }
    }
    do throws(NodeProblem) {
      encoder = try LivePictureEncoder(settings)
    } catch {
      words.text = error.text
      throw NodeFault(.library, code: -1)
    }
    openTime = time
    wantsKey = true
    keyTime = nil
    isTold = false
    reportOpening(&ports)
  }

  /// A new encoder costs a key frame: it is worth it for a sixth, and upwards only after a while.
  private func isWorthOpening(_ bitrate: Int, at time: Nanoseconds) -> Bool {
    let ratio = Double(bitrate) / Double(encoder.bitrate)
    let age = time &- (openTime ?? time)
    if ratio < 5.0 / 6 { return age >= .milliseconds(1_000) }
    return ratio > 6.0 / 5 && age >= .milliseconds(3_000)
  }

  // MARK: Events

  private mutating func reportOpening(_ ports: inout Ports) {
    guard !isTold else { return }
    isTold = true
    let settings = encoder.settings
    ports.post(Event.encoding.rawValue) { event in
      event.field("codec", settings.coding == .h264 ? "h264" : "vp8")
      event.field("width", settings.size.width)
      event.field("height", settings.size.height)
      event.field("bps", settings.bitrate)
    }
  }

  private mutating func report(_ ports: inout Ports, isLast: Bool = false) {
    let counts = counts
    if damaged.isDue(counts.damaged, at: ports.now, isLast: isLast) {
      ports.post(Event.damaged.rawValue) { $0.field("count", counts.damaged) }
    }
    if tooLarge.isDue(counts.tooLarge, at: ports.now, isLast: isLast) {
      ports.post(Event.tooLarge.rawValue) { $0.field("count", counts.tooLarge) }
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard fault.reason == .library else { return nil }
    let size = "\(source.width)x\(source.height)"
    return "a picture of \(size) could not be encoded to \(coding.name): \(words.text ?? "unknown reason")"
  }
}
