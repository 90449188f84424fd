internal import MillraceCore
internal import MillraceJSON
internal import MillraceRTC

/// What a call has used since it began.
struct CallUsage {
  /// What the node had sent, and no session took.
  struct Unsent {
    /// Packets of sound, and pictures.
    var media = 0
    var messages = 0
  }

  var sessions = 0
  var sentPackets: UInt64 = 0, sentBytes: UInt64 = 0
  var receivedPackets: UInt64 = 0, receivedBytes: UInt64 = 0
  var lost: Int64 = 0
  var recovered = 0, retransmitted = 0, late = 0, refused = 0
  /// Of the present sessions: the largest.
  var roundTrip: Nanoseconds?
  var jitter: Nanoseconds = 0
  /// Bits a second that the network may carry: the least estimate; 0: not known.
  var estimate = 0

  mutating func add(_ statistics: RTCStatistics) {
    let (sound, video) = (statistics.sound, statistics.video)
    sentPackets += sound.sentPackets + video.sentPackets
    sentBytes += sound.sentBytes + video.sentBytes
    receivedPackets += sound.receivedPackets + video.receivedPackets
    receivedBytes += sound.receivedBytes + video.receivedBytes
    lost += sound.lost + video.lost
    recovered += video.recovered
    retransmitted += video.retransmitted
    late += sound.tooLate
    let peer = statistics.refusals
    refused += sound.refused + video.refused + peer.forged + peer.replayed + peer.malformed + peer.sources
    if let time = statistics.roundTrip ?? sound.roundTrip { roundTrip = max(roundTrip ?? 0, time) }
    jitter = max(jitter, sound.jitter)
    if statistics.sendBitrate > 0 {
      estimate = estimate == 0 ? statistics.sendBitrate : min(estimate, statistics.sendBitrate)
    }
  }

  /// - Parameters:
  ///   - interval: since the counts before; nil: there are none.
  ///   - dropped: packets that found no room towards the node.
  func json(since last: CallUsage, in interval: Nanoseconds?, dropped: Int, unsent: Unsent) -> JSONValue {
    func rate(_ now: UInt64, _ before: UInt64) -> JSONValue? {
      guard let interval, interval > 0, now >= before else { return nil }
      return .integer(Int(Double(now - before) * 8e9 / Double(interval)))
    }
    var members: [JSONValue.Member] = []
    func add(_ name: String, _ value: Int) { members.append(JSONValue.Member(name, .integer(value))) }
    func add(_ name: String, _ value: JSONValue?) {
      if let value { members.append(JSONValue.Member(name, value)) }
    }
    func milliseconds(_ time: Nanoseconds) -> JSONValue { .double(Double(time / 1_000) / 1_000) }
    add("sessions", sessions)
    add("sentPackets", Int(clamping: sentPackets))
    add("sentBytes", Int(clamping: sentBytes))
    add("receivedPackets", Int(clamping: receivedPackets))
    add("receivedBytes", Int(clamping: receivedBytes))
    add("lost", Int(clamping: lost))
    add("recovered", recovered)
    add("retransmitted", retransmitted)
    add("late", late)
    add("refused", refused)
    add("dropped", dropped)
    add("unsent", unsent.media)
    add("unsentMessages", unsent.messages)
    add("rttMs", roundTrip.map { milliseconds($0) })
    add("jitterMs", milliseconds(jitter))
    add("sendBitrate", rate(sentBytes, last.sentBytes))
    add("receiveBitrate", rate(receivedBytes, last.receivedBytes))
    if estimate > 0 { add("estimate", estimate) }
    return .object(members)
  }
}
