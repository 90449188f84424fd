public import MillraceCore

/// `video.sample`: emits a JPEG of the newest picture at every slot of a grid, strictly under a byte budget.
///
/// - Input `in`: raw pictures of any size and pixel type; at most two are held. Output `out`: JPEG, one per packet, in blocks of exactly the
///   budget, so nothing larger can leave. Position counts slots; the timestamp is the picture's own.
/// - The first slot is at the first picture; slot n is n intervals later, computed, not accumulated. Each takes the newest picture
///   not sampled yet; older ones are counted as superseded.
/// - If the graph is paced, slots follow the clock. If its source waits to be read, there is no such clock: slots follow the
///   pictures' own timestamps, and a slot takes the newest picture up to it. Nothing is skipped for a slow reader then; back-pressure
///   makes the source wait.
/// - A slot produces no picture if nothing new arrived, if two earlier pictures are still in use (on the clock only), or, with `skipStill`, if
///   the picture looks like the last one sampled.
/// - A picture that does not fit at any size is dropped; event `tooLarge`. Supports sizes from 1x1.
/// - Latency: up to one interval, plus encoding: about 10 ms at 1280x720. Bulk lane; allocates, as libjpeg does.
@safe
public struct VideoSample: ~Copyable, Node {
  private let pixel: PixelType
  private let width: Int
  private let height: Int
  /// True if slots follow the clock, not the pictures' timestamps.
  private let followsClock: Bool
  private let skipsStill: Bool
  private let encoder: BudgetEncoder
  /// Converts other pixel types to planar 4:2:0.
  private let converter: PictureScaler?
  private var grid: SampleGrid
  private var newest: Packet?
  private var sent = InFlightPictures()
  private var still = StillDetector()
  private var counts = Counts()
  private var lastSkip: Skip?

  private enum Skip { case noNew, busy, still }

  private struct Counts {
    var pictures = 0
    var superseded = 0
    var noNew = 0
    var busy = 0
    var still = 0
    var tooLarge = 0
    var late = 0
    var encodes = 0
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .video(let width, let height, let pixel, _) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes only pictures")
    }
    let values = setup.parameters
    self.width = width
    self.height = height
    self.pixel = pixel
    followsClock = setup.pacing != .waits
    skipsStill = values.bool("skipStill")
    encoder = BudgetEncoder(
      limit: Self.budget(values).largestJPEG, width: width, height: height, scaling: values.bool("resize"))
    converter = pixel == .i420 ? nil : PictureScaler(to: .i420, width: width, height: height)
    grid = SampleGrid(interval: values.nanoseconds("interval"))
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    followsClock ? try processByClock(&ports) : try processByTimes(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // The last picture of a file has no successor to end its slot.
    if !followsClock, let picture = newest.take() {
      let due = grid.next(now: picture.timestamp)
      if due <= picture.timestamp { try take(picture, at: due, &ports) }
    }
    tellTotals(&ports)
    return .ended
  }

  // MARK: By the clock

  private mutating func processByClock(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      if newest != nil { counts.superseded += 1 }
      newest = consume packet
    }
    if grid.next(now: ports.now) <= ports.now {
      // Of several past slots, the newest picture belongs to the last.
      let missed = grid.advance(upTo: ports.now)
      if missed > 0 { tellLate(Int(missed), &ports) }
      try sample(&ports)
      grid.advance()
    }
    ports.wake(at: grid.next(now: ports.now))
    return .done
  }

  private mutating func sample(_ ports: inout Ports) throws(NodeFault) {
    guard newest != nil else { return skip(.noNew, &ports) }
    guard sent.held() < 2 else { return skip(.busy, &ports) }
    if let picture = newest.take() { try take(picture, at: ports.now, &ports) }
  }

  // MARK: By the pictures' times

  private mutating func processByTimes(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let time = packet.timestamp
    // Every slot before this picture is over. Only the first of them can have a new picture.
    let due = grid.next(now: time)
    if due < time {
      if let picture = newest.take() {
        try take(picture, at: due, &ports)
        grid.advance()
      }
      let passed = grid.advance(to: time)
      if passed > 0 { skip(.noNew, slots: Int(passed), &ports) }
    }
    if newest != nil { counts.superseded += 1 }
    newest = consume packet
    return .done
  }

  // MARK: Pictures

  /// Encodes a picture and emits it.
  private mutating func take(
    _ picture: consuming Packet, at time: Nanoseconds, _ ports: inout Ports
  ) throws(NodeFault) {
    let result: BudgetEncoder.Result
    do throws(BudgetEncoder.Failure) {
      guard let encoded = try encode(picture) else { return skip(.still, &ports) }
      result = encoded
    } catch {
      guard error == .tooLarge else { throw NodeFault(.library) }
      counts.tooLarge += 1
      let count = counts.tooLarge
      return ports.post(Event.tooLarge.rawValue) { $0.field("count", count) }
    }
    counts.encodes += result.encodes
    counts.pictures += 1
    lastSkip = nil
    var packet = try ports.makePacket(bytes: result.byteCount, of: HeldReply(of: picture))
    var target = packet.mutableSamples(of: UInt8.self)
    encoder.copy(result, into: &target)
    packet.timestamp = picture.timestamp
    packet.position = grid.slot
    post(result, age: time &- picture.timestamp, &ports)
    if followsClock { sent.note(packet) }
    ports.emit(packet)
  }

  /// Encodes a picture; nil if it is skipped as still.
  private mutating func encode(_ picture: borrowing Packet) throws(BudgetEncoder.Failure) -> BudgetEncoder
    .Result?
  {
    let view = PictureView(picture.samples(of: UInt8.self), pixel, width: width, height: height)
    guard let converter else { return try encode(view) }
    guard converter.scale(view) else { throw .refused }
    return try encode(converter.view)
  }

  private mutating func encode(_ view: borrowing PictureView) throws(BudgetEncoder.Failure) -> BudgetEncoder
    .Result?
  {
    if skipsStill {
      if still.isStill(view) { return nil }
      still.remember()
    }
    return try encoder.encode(view)
  }

  // MARK: Events

  private mutating func skip(_ reason: Skip, slots: Int = 1, _ ports: inout Ports) {
    let (name, count): (StaticString, Int)
    switch reason {
    case .noNew:
      counts.noNew += slots
      (name, count) = ("noNew", counts.noNew)
    case .busy:
      counts.busy += slots
      (name, count) = ("busy", counts.busy)
    case .still:
      counts.still += slots
      (name, count) = ("still", counts.still)
    }
    guard lastSkip != reason else { return }
    lastSkip = reason
    ports.post(Event.skipped.rawValue) { event in
      event.field("reason", name)
      event.field("count", count)
    }
  }

  private mutating func tellLate(_ slots: Int, _ ports: inout Ports) {
    counts.late += slots
    let count = counts.late
    ports.post(Event.late.rawValue) { event in
      event.field("slots", slots)
      event.field("count", count)
    }
  }

  private func post(_ result: BudgetEncoder.Result, age: Nanoseconds, _ ports: inout Ports) {
    let scale = Double(result.width) / Double(width)
    ports.post(Event.picture.rawValue) { event in
      event.field("bytes", result.byteCount)
      event.field("width", result.width)
      event.field("height", result.height)
      event.field("quality", result.quality, decimals: 1)
      event.field("scale", scale, decimals: 3)
      event.field("encodes", result.encodes)
      event.field("age", Double(age) / 1e6, decimals: 3)
    }
  }

  private func tellTotals(_ ports: inout Ports) {
    let counts = counts
    ports.post(Event.sampled.rawValue) { event in
      event.field("pictures", counts.pictures)
      event.field("superseded", counts.superseded)
      event.field("noNew", counts.noNew)
      event.field("busy", counts.busy)
      event.field("still", counts.still)
      event.field("tooLarge", counts.tooLarge)
      event.field("late", counts.late)
      event.field("encodes", counts.encodes)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    guard fault.reason == .library else { return nil }
    return "a picture of \(width)x\(height) could not be encoded: \(encoder.words); add video.scale before it"
  }
}
