/// Puts packets that were sent together into groups, and measures from one group to the next.
///
/// Packets within 5 ms, and those that a queue handed out in a burst, count as one, so that neither the sender's pacing nor a
/// radio's scheduling looks like a queue (draft-ietf-rmcat-gcc-02, section 5.2; libwebrtc, `InterArrivalDelta`).
struct PacketGroups: Sendable {
  /// From one group to the next.
  struct Step: Sendable, Equatable {
    /// Nanoseconds between the last packets when they were sent.
    var sent: Int64
    /// Nanoseconds between the last packets when they arrived, not negative.
    var arrived: Int64
    /// When the later group had arrived.
    var arrival: Int64
  }

  /// The longest group, and the longest distance in a burst (draft section 5.2, `burst_time`).
  private static let burstTime = 5 * CongestionUnit.nanosecondsPerMillisecond
  /// The longest burst (libwebrtc, `kMaxBurstDuration`).
  private static let longestBurst = 100 * CongestionUnit.nanosecondsPerMillisecond
  /// The receiver's clock jumped when it moved this much more than ours (libwebrtc, `kArrivalTimeOffsetThreshold`).
  private static let clockJump = 3 * CongestionUnit.nanosecondsPerSecond
  /// The receiver's clock jumped back after this many groups in disorder (libwebrtc, `kReorderedResetThreshold`).
  private static let groupsInDisorder = 3
  /// The sender's clock jumped back after this many packets in disorder; no network keeps more of them in a row.
  private static let packetsInDisorder = 50

  private struct Group {
    var firstSent: Int64
    var lastSent: Int64
    var firstArrival: Int64
    var lastArrival: Int64
    var noted: Int64
  }

  private var current: Group?
  private var previous: Group?
  private var disorderedGroups = 0
  private var disorderedPackets = 0

  /// Adds a packet, known since `now` on our clock, and gives the step between the two groups before it when it begins a new one.
  mutating func note(sent: Int64, arrival: Int64, at now: Int64) -> Step? {
    guard let group = current else {
      begin(sent, arrival, now)
      return nil
    }
    guard sent >= group.firstSent else {
      countDisorder(sent, arrival, now)
      return nil
    }
    disorderedPackets = 0
    guard isNext(sent, arrival, after: group) else {
      current?.lastSent = max(group.lastSent, sent)
      current?.lastArrival = max(group.lastArrival, arrival)
      current?.noted = now
      return nil
    }
    let (before, hasJumped) = (previous, jumped(from: previous, to: group))
    if hasJumped {
      self = PacketGroups()
      begin(sent, arrival, now)
      return nil
    }
    previous = group
    begin(sent, arrival, now)
    return before.flatMap { step(from: $0, to: group) }
  }

  private mutating func begin(_ sent: Int64, _ arrival: Int64, _ now: Int64) {
    current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival, noted: now)
  }

  private mutating func countDisorder(_ sent: Int64, _ arrival: Int64, _ now: Int64) {
    disorderedPackets += 1
    guard disorderedPackets >= Self.packetsInDisorder else { return }
    self = PacketGroups()
    begin(sent, arrival, now)
  }

  private func isNext(_ sent: Int64, _ arrival: Int64, after group: Group) -> Bool {
    let (sending, arriving) = (sent.elapsed(since: group.lastSent), arrival.elapsed(since: group.lastArrival))
    let isBurst =
      sending == 0
      || arriving < sending && (-Self.longestBurst...Self.burstTime).contains(arriving)
        && arrival.elapsed(since: group.firstArrival) < Self.longestBurst
    return !isBurst && sent.elapsed(since: group.firstSent) > Self.burstTime
  }

  private func jumped(from earlier: Group?, to later: Group) -> Bool {
    guard let earlier else { return false }
    let arrived = later.lastArrival.elapsed(since: earlier.lastArrival)
    if arrived < 0 { return disorderedGroups + 1 >= Self.groupsInDisorder }
    return arrived.elapsed(since: later.noted.elapsed(since: earlier.noted)) >= Self.clockJump
  }

  private mutating func step(from earlier: Group, to later: Group) -> Step? {
    let arrived = later.lastArrival.elapsed(since: earlier.lastArrival)
    guard arrived >= 0 else {
      disorderedGroups += 1
      return nil
    }
    disorderedGroups = 0
    return Step(
      sent: later.lastSent.elapsed(since: earlier.lastSent), arrived: arrived, arrival: later.lastArrival)
  }
}
