/// Puts H.264 access units together from RTP payloads (RFC 6184, packetization modes 0 and 1).
///
/// In: payloads in the order of their sequence numbers, holes included; late ones and copies are ignored. Single NAL units, STAP-A and
/// FU-A are taken, the packets of packetization mode 2 refused. Out: access units in Annex B form with start codes of four bytes, each as
/// soon as it is complete: with its marker, or with the first packet of another timestamp.
///
/// After a hole, a NAL unit of which a fragment is missing is left out, and the access unit is delivered as damaged. An access unit of
/// which the hole may have swallowed the first slice, or the parameter sets of an IDR picture, is damaged too. One that is larger than
/// the buffer is discarded and counted.
///
/// Allocates at `init` only. One thread at a time.
public struct H264Depacketizer: ~Copyable, Sendable {
  /// Room for access units by default: far above what a key frame at 4 Mbit/s needs. Memory is only used as far as access units reach.
  public static let standardCapacity = 1 << 20
  /// Room for parameter sets from the SDP, start codes included.
  private static let parameterSetCapacity = 4_096
  private static let startCode: InlineArray<4, UInt8> = [0, 0, 0, 1]

  /// A NAL unit of which the last fragment has not arrived.
  private struct Fragments {
    /// Where the access unit ended before it.
    var start: Int
    var type: H264NALUnitType
    /// Whether parameter sets were put in front of it.
    var hasParameterSets: Bool
  }

  private var assembler: FrameAssembler
  private var fragments: Fragments?
  /// Parameter sets of the SDP in Annex B form, until the stream brings its own.
  private var parameterSets: [UInt8] = []
  /// Whether the open access unit has parameter sets, of the stream or of the SDP.
  private var hasParameterSets = false

  /// Makes a depacketizer for access units of at most `maximumBytes`.
  public init(maximumBytes: Int = standardCapacity) {
    assembler = FrameAssembler(capacity: maximumBytes)
    parameterSets.reserveCapacity(Self.parameterSetCapacity)
  }

  /// What was counted so far.
  public var statistics: DepacketizerStatistics { assembler.statistics }

  /// Forgets the stream, such as when its SSRC changes. Parameter sets of the SDP and the counters stay.
  public mutating func reset() {
    assembler.reset()
    fragments = nil
    hasParameterSets = false
  }

  /// Adds a parameter set of `sprop-parameter-sets` (RFC 6184 section 8.1), decoded from Base64.
  ///
  /// The sets are put in front of the IDR slices of an access unit that has none, until the stream brings a set of its own.
  /// - Throws: when it is no parameter set, or there is no room for it.
  public mutating func addParameterSet(_ nalUnit: Span<UInt8>) throws(PayloadProblem) {
    guard nalUnit.count > 1 else { throw .truncated(.h264, bytes: nalUnit.count, needed: 2) }
    let type = H264NALUnitType(header: nalUnit[0])
    guard type.isParameterSet else { throw .unsupportedType(type) }
    let room = Self.parameterSetCapacity - parameterSets.count
    guard nalUnit.count + Self.startCode.count <= room else {
      throw .noRoom(bytes: room, needed: nalUnit.count + Self.startCode.count)
    }
    for index in Self.startCode.indices { parameterSets.append(Self.startCode[index]) }
    for index in nalUnit.indices { parameterSets.append(nalUnit[index]) }
  }

  /// Takes a payload.
  /// - Parameters:
  ///   - payload: without RTP header, extensions and padding. An empty one is padding, which only fills its place in the sequence.
  ///   - sequence: the sequence number, unwrapped.
  ///   - timestamp: of the RTP packet, unwrapped or not: it is compared for equality, and returned with the access unit.
  ///   - marker: the marker bit.
  ///   - deliver: called for each access unit that is complete: at most twice.
  /// - Throws: when the payload is refused. The access unit it belongs to is then damaged.
  public mutating func add(
    _ payload: Span<UInt8>, sequence: Int64, timestamp: Int64, marker: Bool,
    deliver: (ReceivedFrame) -> Void
  ) throws(PayloadProblem) {
    guard let arrival = assembler.arrive(sequence, isPadding: payload.isEmpty) else { return }
    if arrival == .afterHole {
      dropFragments()
      // What is missing may be the end of this access unit, even when another begins now.
      if assembler.isOpen { assembler.isDamaged = true }
    }
    if assembler.isOpen, assembler.timestamp != timestamp { finish(deliver) }
    if !assembler.isOpen {
      assembler.open(timestamp, after: arrival)
      let hasSets = !parameterSets.isEmpty
      if arrival != .next, !H264Payload.canBeginAccessUnit(payload, hasParameterSets: hasSets) {
        assembler.isDamaged = true
      }
    }
    var problem: PayloadProblem?
    do throws(PayloadProblem) { try take(payload) } catch {
      problem = error
      assembler.statistics.refusedPackets += 1
      dropFragments()
      assembler.isDamaged = true
    }
    if marker { finish(deliver) }
    if let problem { throw problem }
  }

  /// Delivers the access unit as far as it has arrived, such as when the stream ends.
  public mutating func flush(deliver: (ReceivedFrame) -> Void) {
    guard assembler.isOpen else { return }
    assembler.isDamaged = true
    finish(deliver)
  }

  private mutating func finish(_ deliver: (ReceivedFrame) -> Void) {
    dropFragments()
    assembler.finish(deliver)
    hasParameterSets = false
  }

  // MARK: Payloads

  private mutating func take(_ payload: Span<UInt8>) throws(PayloadProblem) {
    let type = H264NALUnitType(header: payload[0])
    if type == .fuA { return try takeFragment(payload) }
    // Another packet between fragments: the last fragment is missing.
    dropFragments()
    if type == .stapA {
      try H264Payload.checkAggregate(payload)
      var units = H264AggregateReader(payload)
      while let unit = units.next() { take(unit: payload.extracting(unit)) }
    } else {
      guard type.isNALUnit else { throw .unsupportedType(type) }
      take(unit: payload)
    }
  }

  private mutating func take(unit: Span<UInt8>) {
    let type = H264NALUnitType(header: unit[0])
    begin(type)
    assembler.append(unit)
    complete(type)
  }

  private mutating func takeFragment(_ payload: Span<UInt8>) throws(PayloadProblem) {
    let head = try H264FragmentHead(parsing: payload)
    if head.isFirst {
      dropFragments()
      fragments = Fragments(
        start: assembler.count, type: head.type, hasParameterSets: hasParameterSets)
      begin(head.type)
      assembler.append(head.nalUnitHeader)
    }
    guard let fragments else {
      // The first fragment is missing.
      assembler.isDamaged = true
      return
    }
    guard fragments.type == head.type else {
      throw .malformed(.h264, "a fragment has another type than the one before it")
    }
    assembler.append(payload.extracting(H264Header.fragmentBytes...))
    if head.isLast {
      self.fragments = nil
      complete(head.type)
    }
  }

  // MARK: NAL units

  /// Writes the start code of a NAL unit, and parameter sets in front of it where they are missing.
  private mutating func begin(_ type: H264NALUnitType) {
    if type == .idrSlice, !hasParameterSets, !parameterSets.isEmpty {
      let sets = parameterSets
      assembler.append(sets.span)
      hasParameterSets = true
    }
    assembler.append(Self.startCode.span)
  }

  private mutating func complete(_ type: H264NALUnitType) {
    if type == .idrSlice || type == .sps { assembler.isKeyFrame = true }
    if type.isParameterSet {
      hasParameterSets = true
      parameterSets.removeAll(keepingCapacity: true)
    }
  }

  /// Removes a NAL unit of which fragments are missing.
  private mutating func dropFragments() {
    guard let begun = fragments else { return }
    fragments = nil
    assembler.truncate(to: begun.start)
    assembler.isDamaged = true
    hasParameterSets = begun.hasParameterSets
  }
}
