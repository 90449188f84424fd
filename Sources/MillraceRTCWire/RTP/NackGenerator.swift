/// Finds the missing packets of a video stream and decides when to request them (RFC 4585, section 6.2.1).
///
/// A gap is requested after `reorderWait`, then once per round trip. A packet that does not come within `largestAge` or after
/// 10 requests is given up, and a key frame is wanted. So it is when more than 200 packets are missing at once. Sans-IO: the
/// owner calls `due` at `deadline` and sends what it gives. All memory is requested by `init`. One thread at a time.
@safe public struct NackGenerator: ~Copyable, @unchecked Sendable {
  /// The most packets that are missing at once; with more, a key frame is cheaper.
  public static let capacity = 200
  /// Requests for one packet.
  public static let largestTries = 10
  /// Nanoseconds that a packet is worth waiting for; longer where two round trips take longer.
  public static let largestAge: Int64 = 200_000_000
  /// The longest wait in nanoseconds, whatever the round trip is.
  private static let longestAge: Int64 = 1_000_000_000
  /// The shortest interval of requests in nanoseconds, on links with a short round trip.
  private static let shortestInterval: Int64 = 20_000_000
  /// The round trip in nanoseconds before one was measured (libwebrtc, kDefaultRtt).
  public static let initialRoundTrip: Int64 = 100_000_000
  /// The shortest interval of key frame requests in nanoseconds.
  public static let keyFrameInterval: Int64 = 500_000_000

  /// What a packet is.
  public enum Verdict: Sendable, Equatable {
    /// Newer than all before; `missing` packets are between, which are awaited from now on.
    case newest(missing: Int)
    /// A packet that was missing; `requests` were sent for it.
    case recovered(requests: Int)
    /// A packet that was not missing, or was given up.
    case known
  }

  private struct Missing {
    var number: Int64 = 0
    /// When the gap was seen.
    var since: Int64 = 0
    /// When it was last requested.
    var requested: Int64 = 0
    var tries = 0
  }

  /// The round trip in nanoseconds, to be kept up to date.
  public var roundTrip: Int64 = Self.initialRoundTrip
  /// Packets that were given up.
  public private(set) var givenUp = 0
  /// Requests for single packets so far.
  public private(set) var requests = 0
  /// Missing packets that are still awaited.
  public private(set) var outstanding = 0

  private let reorderWait: Int64
  private var unwrapper = SequenceUnwrapper()
  /// Since when a key frame is wanted.
  private var keyFrameWanted: Int64?
  private var keyFrameRequested: Int64?
  /// The missing packets, in order.
  private let missing: UnsafeMutablePointer<Missing>

  /// Creates a generator that takes packets as reordered for `reorderWait` nanoseconds before it requests them.
  public init(reorderWait: Int64 = 10_000_000) {
    self.reorderWait = max(0, reorderWait)
    unsafe missing = .allocate(capacity: Self.capacity)
    unsafe missing.initialize(repeating: Missing(), count: Self.capacity)
  }

  deinit { unsafe missing.deallocate() }

  /// True from the moment that a packet is given up until a key frame comes.
  public var wantsKeyFrame: Bool { keyFrameWanted != nil }

  /// Notes a packet, also one that came by retransmission.
  public mutating func note(sequence: UInt16, at now: Int64) -> Verdict {
    guard let highest = unwrapper.highest else {
      _ = unwrapper.unwrap(sequence)
      return .newest(missing: 0)
    }
    let number = unwrapper.unwrap(sequence)
    guard number > highest else { return arrived(number) }
    let gap = Int(number - highest - 1)
    guard outstanding + gap <= Self.capacity else {
      giveUpAll(and: gap, at: now)
      return .newest(missing: 0)
    }
    for step in 0..<gap {
      unsafe missing[outstanding] = Missing(number: highest + 1 + Int64(step), since: now)
      outstanding += 1
    }
    return .newest(missing: gap)
  }

  /// Notes that a key frame begins with this packet: what is missing before it is no longer needed.
  public mutating func noteKeyFrame(sequence: UInt16) {
    let number = unwrapper.guess(sequence)
    var kept = 0
    while kept < outstanding, unsafe missing[kept].number < number { kept += 1 }
    remove(first: kept)
    keyFrameWanted = nil
  }

  /// Writes the sequence numbers to request now, in order, and gives how many there are. Those without room are due again at once.
  public mutating func due(at now: Int64, into destination: inout MutableSpan<UInt16>) -> Int {
    giveUp(at: now)
    var count = 0
    for index in 0..<outstanding where count < destination.count {
      guard unsafe requestTime(missing[index]) <= now else { continue }
      destination[count] = unsafe UInt16(truncatingIfNeeded: missing[index].number)
      count += 1
      var asked = unsafe missing[index]
      asked.requested = now
      asked.tries += 1
      unsafe missing[index] = asked
    }
    requests += count
    return count
  }

  /// True when a key frame is wanted and none was requested within the last 500 ms; it counts as requested then.
  public mutating func takeKeyFrameRequest(at now: Int64) -> Bool {
    guard let time = keyFrameTime, time <= now else { return false }
    keyFrameRequested = now
    return true
  }

  /// When `due` or `takeKeyFrameRequest` has something to do next; nil: not before the next packet.
  public var deadline: Int64? {
    var earliest = keyFrameTime
    for index in 0..<outstanding {
      let time = unsafe min(requestTime(missing[index]), endTime(missing[index]))
      earliest = min(earliest ?? time, time)
    }
    return earliest
  }

  /// Forgets the packets and the wanted key frame, for a source that restarted. The round trip, the counts and the time of the last request
  /// for a key frame stay.
  public mutating func reset() {
    unwrapper.reset()
    outstanding = 0
    keyFrameWanted = nil
  }

  // MARK: Times

  private func requestTime(_ packet: Missing) -> Int64 {
    if packet.tries == 0 { return packet.since &+ reorderWait }
    return packet.requested &+ interval
  }

  /// When a packet is given up: it is too old, or its last request had a round trip to be answered.
  private func endTime(_ packet: Missing) -> Int64 {
    let age = min(max(Self.largestAge, 2 * boundedRoundTrip), Self.longestAge)
    let end = packet.since &+ age
    return packet.tries < Self.largestTries ? end : min(end, packet.requested &+ interval)
  }

  private var interval: Int64 { max(boundedRoundTrip, Self.shortestInterval) }

  private var boundedRoundTrip: Int64 { max(0, min(roundTrip, Self.longestAge)) }

  private var keyFrameTime: Int64? {
    guard let wanted = keyFrameWanted else { return nil }
    return keyFrameRequested.map { max(wanted, $0 &+ Self.keyFrameInterval) } ?? wanted
  }

  // MARK: The list

  private mutating func arrived(_ number: Int64) -> Verdict {
    var (low, high) = (0, outstanding)
    while low < high {
      let middle = (low + high) / 2
      if unsafe missing[middle].number < number { low = middle + 1 } else { high = middle }
    }
    guard low < outstanding, unsafe missing[low].number == number else { return .known }
    let tries = unsafe missing[low].tries
    outstanding -= 1
    for index in low..<outstanding { unsafe missing[index] = missing[index + 1] }
    return .recovered(requests: tries)
  }

  private mutating func giveUp(at now: Int64) {
    var kept = 0
    for index in 0..<outstanding {
      if unsafe endTime(missing[index]) <= now { continue }
      unsafe missing[kept] = missing[index]
      kept += 1
    }
    guard kept < outstanding else { return }
    givenUp += outstanding - kept
    outstanding = kept
    keyFrameWanted = keyFrameWanted ?? now
  }

  private mutating func giveUpAll(and gap: Int, at now: Int64) {
    givenUp += outstanding + gap
    outstanding = 0
    keyFrameWanted = keyFrameWanted ?? now
  }

  private mutating func remove(first count: Int) {
    guard count > 0 else { return }
    outstanding -= count
    for index in 0..<outstanding { unsafe missing[index] = missing[index + count] }
  }
}
