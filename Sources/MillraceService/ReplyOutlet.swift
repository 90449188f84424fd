internal import MillraceCore
internal import MillraceNet
internal import Synchronization

/// From the connection to the graph: the node's outputs, on its thread. Posts events, emits texts, images and the audio of replies with
/// their generation, position and end, and discards what was cancelled. Does not allocate.
struct ReplyOutlet: ~Copyable {
  private let exchange: ServiceExchange
  /// The output for replies, if it is linked.
  private let audio: Int?
  /// The output for texts, if it is linked.
  private let text: Int?
  /// The output for addresses of streams, if it is linked.
  private let stream: Int?
  /// The output for images, if it is linked.
  private let image: Int?
  /// The output for paths of received files, if it is linked.
  private let file: Int?
  /// Bytes of a sample; 1 for encoded audio.
  private let sampleBytes: Int
  private let rate: Int
  private let pieceBytes: Int
  /// Each message of the service is one packet.
  private let isWhole: Bool
  /// Bytes at the start of a message that is no audio, such as the header of an Opus stream.
  private let header: StaticString?

  private var position: Int64 = 0
  /// Bytes of the oldest audio that were delivered.
  private var delivered = 0
  /// The first byte of an incomplete sample.
  private var part: UInt8 = 0
  private var hasPart = false
  /// Audio at smaller positions in the queue is stale.
  private var staleBefore = 0
  /// Cancellations by other nodes, and how many of them the connection has acknowledged. Until it has, it puts audio of the cancelled
  /// reply into the queue.
  private var graphCancellations = 0
  private var acknowledgedCancellations = 0
  /// An image whose pieces arrive, and the bytes of it that have.
  private var picture: Packet?
  private var pictureCount = 0

  init(
    _ exchange: ServiceExchange, audio: Int?, text: Int?, stream: Int?, image: Int?, file: Int?,
    shape: OutputShape?, isWhole: Bool, header: StaticString?
  ) {
    self.exchange = exchange
    self.audio = audio
    self.text = text
    self.stream = stream
    self.image = image
    self.file = file
    picture = nil
    let isPCM = shape?.format.kind == .pcm
    sampleBytes = isPCM ? 2 : 1
    rate = isPCM ? shape?.format.rate ?? 0 : 0
    pieceBytes = max(2, shape?.packetBytes ?? 2)
    self.isWhole = isWhole
    self.header = header
  }

  /// Discards the audio at smaller positions in the queue.
  mutating func discard(before position: Int) {
    staleBefore = max(staleBefore, position)
    hasPart = false
  }

  /// Another node cancelled the reply.
  mutating func cancelReply() {
    discard(before: exchange.audio.end)
    graphCancellations += 1
    exchange.graphCancellations.store(graphCancellations, ordering: .releasing)
    exchange.wakeSignal.signal()
  }

  /// Posts the oldest event, or emits the text of a reply, the address of its stream or the path of a file. True when there was one.
  mutating func postEvent(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.events.peek() else { return false }
    let bytes = unsafe record.bytes
    if record.kind == ServiceExchange.In.event {
      EventRecord.post(unsafe bytes.span, &ports)
    } else if let output = output(of: record.kind) {
      // The connection cuts long texts into pieces of this output's size.
      guard ports.hasRoomOrRequestsWake(output) else { return false }
      var packet = try ports.makePacket(output, bytes: bytes.count, of: .none)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = unsafe bytes[index] }
      ports.emit(packet, to: output)
    }
    exchange.events.drop(record)
    wakeIfRequested(exchange.events)
    return true
  }

  /// The output for a record that is no event, if it is linked.
  private func output(of kind: UInt8) -> Int? {
    switch kind {
    case ServiceExchange.In.stream: stream
    case ServiceExchange.In.file: file
    default: text
    }
  }

  /// Puts the oldest piece into its image, and emits the image with the last. True when there was a piece.
  mutating func deliverImage(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let image, let record = exchange.images.peek() else { return false }
    let bytes = unsafe record.bytes
    var start = 0
    if record.kind == ServiceExchange.In.image {
      guard ports.hasRoomOrRequestsWake(image) else { return false }
      start = 4
      var size = 0
      for index in 0..<start { size |= unsafe Int(bytes[index]) << (8 * index) }
      picture = try ports.makePacket(image, bytes: size, of: .none)
      pictureCount = 0
    }
    if var packet = picture.take() {
      var target = packet.mutableSamples(of: UInt8.self)
      for index in start..<bytes.count { target[pictureCount + index - start] = unsafe bytes[index] }
      pictureCount += bytes.count - start
      if pictureCount == target.count { ports.emit(packet, to: image) } else { picture = consume packet }
    }
    exchange.images.drop(record)
    wakeIfRequested(exchange.images)
    return true
  }

  /// Delivers the oldest audio, or a part of it. True when there was some.
  mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.audio.peek() else { return false }
    guard isAcknowledged(), record.position >= staleBefore else {
      done(record)
      return true
    }
    if let audio, !ports.hasRoomOrRequestsWake(audio) { return false }
    if record.kind == ServiceExchange.In.endOfUtterance {
      try endUtterance(record, &ports)
      return true
    }
    guard let audio else {
      done(record)
      return true
    }
    if isWhole {
      try emitWhole(record, &ports, audio)
    } else {
      try emitPiece(record, &ports, audio)
    }
    return true
  }

  private mutating func endUtterance(
    _ record: ByteQueue.Record, _ ports: inout Ports
  ) throws(NodeFault) {
    hasPart = false
    if let audio {
      var packet = try ports.makePacket(audio, bytes: 0, of: ports.currentReply)
      packet.flags.insert(.endOfUtterance)
      packet.position = position
      ports.emit(packet, to: audio)
    }
    exchange.delivered.add(1, ordering: .releasing)
    done(record)
    exchange.wakeSignal.signal()
  }

  /// True when the connection has seen every cancellation of the graph: what it puts into the queue from then on belongs to later replies.
  private mutating func isAcknowledged() -> Bool {
    guard acknowledgedCancellations != graphCancellations else { return true }
    guard exchange.acknowledgedCancellations.load(ordering: .acquiring) == graphCancellations else {
      return false
    }
    acknowledgedCancellations = graphCancellations
    discard(before: exchange.acknowledgedBefore.load(ordering: .relaxed))
    return true
  }

  /// Emits a message as one packet.
  private mutating func emitWhole(
    _ record: ByteQueue.Record, _ ports: inout Ports, _ audio: Int
  ) throws(NodeFault) {
    let bytes = unsafe record.bytes
    let isHeader = unsafe beginsWithHeader(bytes.span)
    if !isHeader && bytes.count <= pieceBytes && bytes.count > 0 {
      var packet = try ports.makePacket(audio, bytes: bytes.count, of: ports.currentReply)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = unsafe bytes[index] }
      ports.emit(packet, to: audio)
    }
    done(record)
  }

  private func beginsWithHeader(_ bytes: Span<UInt8>) -> Bool {
    guard let header, bytes.count >= header.utf8CodeUnitCount else { return false }
    for index in 0..<header.utf8CodeUnitCount where unsafe bytes[index] != header.utf8Start[index] {
      return false
    }
    return true
  }

  private mutating func emitPiece(
    _ record: ByteQueue.Record, _ ports: inout Ports, _ audio: Int
  ) throws(NodeFault) {
    let bytes = unsafe record.bytes
    let fromPart = hasPart ? 1 : 0
    let wanted = min(bytes.count - delivered, pieceBytes - fromPart)
    let whole = (fromPart + wanted) / sampleBytes * sampleBytes
    if whole > 0 {
      var packet = try ports.makePacket(audio, bytes: whole, of: ports.currentReply)
      var target = packet.mutableSamples(of: UInt8.self)
      if hasPart { target[0] = part }
      for index in fromPart..<whole { target[index] = unsafe bytes[delivered + index - fromPart] }
      packet.duration = rate > 0 ? whole / sampleBytes : 0
      packet.position = position
      position += Int64(packet.duration)
      ports.emit(packet, to: audio)
      delivered += whole - fromPart
      hasPart = false
    }
    let left = bytes.count - delivered
    guard left < sampleBytes else { return }
    // Less than a sample is left of the message: it is kept for the next.
    if left == 1 {
      part = unsafe bytes[delivered]
      hasPart = true
    }
    done(record)
  }

  private mutating func done(_ record: ByteQueue.Record) {
    delivered = 0
    exchange.audio.drop(record)
    wakeIfRequested(exchange.audio)
  }

  private func wakeIfRequested(_ queue: ByteQueue) {
    if queue.takeRequest() { exchange.wakeSignal.signal() }
  }
}
