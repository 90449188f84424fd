@testable import MillraceRTCWire

/// Everything that a packet of RTCP says, without a view into its bytes.
enum RTCPContent: Equatable {
  struct Item: Equatable {
    var ssrc: UInt32
    var kind: UInt8
    var text: String
  }

  case senderReport(RTCPSenderInfo, [RTCPReportBlock])
  case receiverReport(UInt32, [RTCPReportBlock])
  case description([Item])
  case goodbye([UInt32], String?)
  /// Which packets: their order and repetitions have no meaning.
  case nack(UInt32, UInt32, Set<UInt16>)
  /// Sender, media, the first packet, the number of the feedback, and the arrivals in nanoseconds after the first.
  case feedback(UInt32, UInt32, UInt16, UInt8, [Int64])
  case pictureLoss(RTCPPictureLoss)
  case fullIntra(UInt32, [RTCPFullIntraRequest.Entry])
  case bitrate(UInt32, UInt64, [UInt32])
  case other(RTCPOtherPacket)

  init(_ packet: RTCPPacket) {
    switch packet {
    case .senderReport(let report): self = .senderReport(report.info, Self.list(report.blocks))
    case .receiverReport(let report): self = .receiverReport(report.ssrc, Self.list(report.blocks))
    case .sourceDescription(let description): self = .description(Self.items(description))
    case .goodbye(let goodbye):
      self = .goodbye((0..<goodbye.count).map { goodbye[$0] }, goodbye.reasonText)
    case .nack(let nack): self = .nack(nack.sender, nack.media, Self.sequences(nack))
    case .transportFeedback(let feedback):
      self = .feedback(
        feedback.sender, feedback.media, feedback.base, feedback.number, Self.arrivals(feedback))
    case .pictureLoss(let loss): self = .pictureLoss(loss)
    case .fullIntraRequest(let request):
      self = .fullIntra(request.sender, (0..<request.count).map { request[$0] })
    case .bitrateEstimate(let estimate):
      self = .bitrate(estimate.sender, estimate.bitrate, (0..<estimate.count).map { estimate[$0] })
    case .other(let other): self = .other(other)
    }
  }

  private static func list(_ blocks: RTCPReportBlocks) -> [RTCPReportBlock] {
    let list = (0..<blocks.count).map { blocks[$0] }
    for block in list where blocks.block(about: block.ssrc) == nil {
      fatalError("no block about \(block.ssrc)")
    }
    return list
  }

  private static func items(_ description: RTCPSourceDescription) -> [Item] {
    var (items, list) = (description.items, [Item]())
    while let item = items.next() {
      list.append(Item(ssrc: item.ssrc, kind: item.kind, text: String(rtcp: item.text)))
    }
    for item in list where item.kind == RTCPSourceItem.canonicalName {
      if description.canonicalName(of: item.ssrc) == nil { fatalError("no name of \(item.ssrc)") }
    }
    return list
  }

  private static func sequences(_ nack: RTCPNack) -> Set<UInt16> {
    var (sequences, all) = (nack.sequences, Set<UInt16>())
    while let sequence = sequences.next() { all.insert(sequence) }
    return all
  }

  private static func arrivals(_ feedback: RTCPTransportFeedback) -> [Int64] {
    var (statuses, all) = (feedback.statuses, [Int64]())
    var (expected, first) = (feedback.base, Int64?.none)
    while let status = statuses.next() {
      if status.sequence != expected { fatalError("\(status.sequence) after \(expected &- 1)") }
      expected &+= 1
      first = first ?? status.arrival
      all.append(status.arrival.map { $0 - (first ?? 0) } ?? RTCPTransportFeedback.notReceived)
    }
    if all.count != feedback.count { fatalError("\(all.count) statuses of \(feedback.count)") }
    return all
  }

  // MARK: Writing

  /// The packet in bytes; nil where nothing writes one like it.
  var bytes: [UInt8]? {
    switch self {
    case .senderReport(let info, let blocks):
      written(1_024) { writer in
        try writer.senderReport(info)
        for block in blocks { try writer.add(block) }
      }
    case .receiverReport(let ssrc, let blocks):
      written(1_024) { writer in
        try writer.receiverReport(ssrc: ssrc)
        for block in blocks { try writer.add(block) }
      }
    case .description(let items) where items.count == 1 && items[0].kind == RTCPSourceItem.canonicalName:
      written(1_024) { try $0.sourceDescription(ssrc: items[0].ssrc, canonicalName: items[0].text) }
    case .goodbye(let sources, let reason) where sources.count == 1:
      written(1_024) { try $0.goodbye(ssrc: sources[0], reason: reason ?? "") }
    case .nack(let sender, let media, let sequences):
      written(16 + 4 * sequences.count) { writer in
        let ordered = sequences.sorted()
        try writer.nack(sender: sender, media: media, sequences: ordered.span)
      }
    case .feedback(let sender, let media, let base, let number, let arrivals):
      written(32 + 3 * arrivals.count) { writer in
        let covered = try writer.transportFeedback(
          sender: sender, media: media, base: base, number: number, arrivals: arrivals.span)
        if covered != arrivals.count { fatalError("\(covered) of \(arrivals.count) packets are covered") }
      }
    case .pictureLoss(let loss):
      written(12) { try $0.pictureLoss(sender: loss.sender, media: loss.media) }
    case .fullIntra(let sender, let entries) where entries.count == 1:
      written(20) {
        try $0.fullIntraRequest(sender: sender, media: entries[0].media, number: entries[0].number)
      }
    case .bitrate(let sender, let bitrate, let sources):
      written(20 + 4 * sources.count) {
        try $0.bitrateEstimate(sender: sender, bitrate: bitrate, sources: sources.span)
      }
    case .description, .goodbye, .fullIntra, .other: nil
    }
  }
}

/// What a body writes into so much room; nil: it is refused.
private func written(_ room: Int, _ body: (inout RTCPWriter) throws -> Void) -> [UInt8]? {
  var bytes = [UInt8](repeating: 0xEE, count: room)
  guard let count = write(into: &bytes, body) else { return nil }
  return Array(bytes[..<count])
}

private func write(into bytes: inout [UInt8], _ body: (inout RTCPWriter) throws -> Void) -> Int? {
  var writer = RTCPWriter(bytes.mutableSpan)
  do { try body(&writer) } catch {
    // A text that is no UTF-8 grows where it is replaced.
    guard case .textTooLong? = error as? RTCPProblem else { fatalError("it cannot be written: \(error)") }
    return nil
  }
  return writer.count
}
