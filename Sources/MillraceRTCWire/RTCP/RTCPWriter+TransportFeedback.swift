extension RTCPWriter {
  /// Writes transport-wide feedback about consecutive packets and gives how many of them it covers.
  ///
  /// `arrivals` are nanoseconds on one clock of the receiver, `RTCPTransportFeedback.notReceived` for a lost packet; the first
  /// is that of the packet `base`. The feedback ends early where the destination is full, or where more than 8.1 s lie between
  /// two packets: the rest goes into another one, with the next `number`. Without arrivals nothing is written.
  public mutating func transportFeedback(
    sender: UInt32, media: UInt32, base: UInt16, number: UInt8, arrivals: Span<Int64>
  ) throws(RTCPProblem) -> Int {
    guard !arrivals.isEmpty else { return 0 }
    let plan = TransportPlan(arrivals, room: room)
    guard plan.statuses > 0 else { throw .noRoom(needed: TransportPlan.smallest, room: room) }
    let size = (plan.size + 3) & ~3
    let start = count
    let position = try feedback(
      .transportFeedback, RTCPFeedbackFormat.transportWide, sender, media, size: size)
    bytes.put(base, at: position)
    bytes.put(UInt16(plan.statuses), at: position + 2)
    bytes.put24(UInt32(truncatingIfNeeded: TransportCursor.reference(arrivals)), at: position + 4)
    bytes[position + 7] = number
    putChunks(plan, arrivals, at: start + RTCPTransportFeedback.headSize)
    if size > plan.size {
      bytes[start] |= 0x20
      bytes[start + size - 1] = UInt8(size - plan.size)
    }
    return plan.statuses
  }

  /// Writes the chunks, and after them the deltas.
  private mutating func putChunks(_ plan: TransportPlan, _ arrivals: Span<Int64>, at offset: Int) {
    var position = offset
    var cursor = TransportCursor(arrivals)
    for _ in 0..<plan.chunks {
      bytes.put(cursor.nextChunk(arrivals, end: plan.statuses).word, at: position)
      position += 2
    }
    cursor = TransportCursor(arrivals)
    for _ in 0..<plan.statuses {
      guard let (symbol, delta) = cursor.next(arrivals) else { return }
      if symbol == TransportSymbol.small { bytes[position] = UInt8(truncatingIfNeeded: delta) }
      if symbol == TransportSymbol.large {
        bytes.put(UInt16(truncatingIfNeeded: delta), at: position)
      }
      position += Int(symbol)
    }
  }
}

/// How much of a list of arrivals one feedback packet covers.
private struct TransportPlan {
  /// Bytes of feedback about one packet: a chunk, and a delta or padding.
  static let smallest = RTCPTransportFeedback.headSize + 4

  /// Statuses that are covered, none where not even one fits.
  private(set) var statuses = 0
  private(set) var chunks = 0
  /// Bytes without padding.
  private(set) var size = RTCPTransportFeedback.headSize

  init(_ arrivals: Span<Int64>, room: Int) {
    var (cursor, end) = (TransportCursor(arrivals), 0)
    while end < Int(UInt16.max), cursor.next(arrivals) != nil { end += 1 }
    // Padding must fit as well, and no packet is longer than its length can say.
    let largest = min(room, 4 * (Int(UInt16.max) + 1)) & ~3
    // Which chunks are best depends on the end, so a plan with a nearer end begins from the start.
    while let nearer = cover(arrivals, end: end, largest) { end = nearer }
  }

  /// Plans for the statuses before an end; where they do not fit, gives a nearer end.
  private mutating func cover(_ arrivals: Span<Int64>, end: Int, _ largest: Int) -> Int? {
    var cursor = TransportCursor(arrivals)
    (statuses, chunks, size) = (0, 0, RTCPTransportFeedback.headSize)
    while statuses < end {
      let before = cursor
      let needed = size + 2 + cursor.nextChunk(arrivals, end: end).deltaBytes
      guard needed <= largest else {
        return statuses + before.count(arrivals, deltaBytes: largest - size - 2)
      }
      (size, chunks, statuses) = (needed, chunks + 1, cursor.index)
    }
    return nil
  }
}

/// Steps through arrivals and turns them into symbols, deltas and chunks.
private struct TransportCursor {
  private(set) var index = 0
  /// The arrival of the last received packet, in units of deltas.
  private var tick: Int64

  init(_ arrivals: Span<Int64>) {
    let unit = RTCPTransportFeedback.referenceUnit / RTCPTransportFeedback.deltaUnit
    tick = Self.reference(arrivals) * unit
  }

  /// The reference time: the first arrival, rounded down to 64 ms; 0: none arrived.
  static func reference(_ arrivals: Span<Int64>) -> Int64 {
    for index in arrivals.indices where arrivals[index] != RTCPTransportFeedback.notReceived {
      return floor(arrivals[index], RTCPTransportFeedback.referenceUnit)
    }
    return 0
  }

  /// The next symbol and delta; nil: there is no other, or its delta does not fit 16 bits.
  mutating func next(_ arrivals: Span<Int64>) -> (symbol: UInt8, delta: Int64)? {
    guard index < arrivals.count else { return nil }
    guard arrivals[index] != RTCPTransportFeedback.notReceived else {
      index += 1
      return (TransportSymbol.notReceived, 0)
    }
    let arrival = Self.floor(arrivals[index], RTCPTransportFeedback.deltaUnit)
    let delta = arrival - tick
    guard Int16(exactly: delta) != nil else { return nil }
    (tick, index) = (arrival, index + 1)
    return (UInt8(exactly: delta) != nil ? TransportSymbol.small : TransportSymbol.large, delta)
  }

  /// How many of the next statuses have deltas of this many bytes together.
  func count(_ arrivals: Span<Int64>, deltaBytes: Int) -> Int {
    var (ahead, left) = (self, deltaBytes)
    while left >= 0, let (symbol, _) = ahead.next(arrivals) {
      left -= Int(symbol)
      if left < 0 { return ahead.index - index - 1 }
    }
    return ahead.index - index
  }

  /// The chunk for the next symbols before `end`, of which there is one at least, and the bytes of their deltas.
  mutating func nextChunk(_ arrivals: Span<Int64>, end: Int) -> (word: UInt16, deltaBytes: Int) {
    let (symbol, run, afterRun) = self.run(arrivals, end: end)
    var vector = vector(arrivals, end: end)
    // A run is as good as a vector that covers no more symbols; one over all that is left always is.
    if run >= vector.count || index + run == end {
      self = afterRun
      return (TransportChunk.run(symbol, run).word, Int(symbol) * run)
    }
    var deltaBytes = 0
    for _ in 0..<vector.count { deltaBytes += Int(next(arrivals)?.symbol ?? 0) }
    // Symbols after the last are zeros.
    vector.word <<= UInt16(vector.free)
    return (vector.word | vector.head, deltaBytes)
  }

  /// How often the next symbol comes in a row, and the cursor after that.
  private func run(_ arrivals: Span<Int64>, end: Int) -> (symbol: UInt8, count: Int, after: TransportCursor) {
    var after = self
    let first = after.next(arrivals)?.symbol ?? TransportSymbol.notReceived
    var count = 1
    while count < TransportChunk.longestRun, index + count < end {
      var ahead = after
      guard ahead.next(arrivals)?.symbol == first else { break }
      (after, count) = (ahead, count + 1)
    }
    return (first, count, after)
  }

  private struct Vector {
    var word: UInt16 = 0
    var count = 0
    /// Bits of the symbols that are missing in the vector.
    var free = 0
    var head: UInt16 = 0
  }

  /// The vector of the next symbols: 14 of one bit where none has a large delta, otherwise 7 of two bits.
  private func vector(_ arrivals: Span<Int64>, end: Int) -> Vector {
    var (ahead, bits, pairs) = (self, Vector(head: 0x8000), Vector(head: 0xC000))
    var hasLarge = false
    for _ in 0..<min(TransportChunk.bits, end - index) {
      let symbol = UInt16(ahead.next(arrivals)?.symbol ?? 0)
      hasLarge = hasLarge || symbol == UInt16(TransportSymbol.large)
      bits.word = bits.word << 1 | symbol & 1
      bits.count += 1
      if pairs.count < TransportChunk.pairs {
        pairs.word = pairs.word << 2 | symbol
        pairs.count += 1
      }
    }
    bits.free = TransportChunk.bits - bits.count
    pairs.free = 2 * (TransportChunk.pairs - pairs.count)
    return hasLarge ? pairs : bits
  }

  /// The quotient rounded towards minus infinity.
  private static func floor(_ value: Int64, _ unit: Int64) -> Int64 {
    let (quotient, rest) = value.quotientAndRemainder(dividingBy: unit)
    return rest < 0 ? quotient - 1 : quotient
  }
}
