internal import MillraceAudio
internal import MillraceCore

/// Interleaves encoded pictures and audio into one stream, in order of time.
///
/// A packet may leave once the other track is known up to its time, has ended, or has been abandoned: it delivered nothing for the whole
/// patience while the packet waited. A track that is merely slow, such as a video that is expensive to decode, is not abandoned.
struct TrackInterleaver {
  private struct Lane {
    var waiting: [EncodedPacket] = []
    /// End of what it delivered; nil: nothing yet.
    var front: Nanoseconds?
    var isRunning: Bool
    /// When it delivered something last, on the graph's clock.
    var came: Nanoseconds?
    /// When it delivered something last that moved its end.
    var advanced: Nanoseconds?
    /// The time up to which it is not waited for.
    var abandonedUntil = Nanoseconds.min
  }

  private var lanes: [Lane]
  private let limit: Nanoseconds
  private var patience: WaitLimit
  /// Time of the first packet that left: the stream's 0.
  private(set) var origin: Nanoseconds?

  init(sound: Bool, patience: Nanoseconds) {
    lanes = [Lane(isRunning: true), Lane(isRunning: sound)]
    limit = patience
    self.patience = WaitLimit(patience)
  }

  // MARK: Input

  mutating func put(_ packet: EncodedPacket) {
    byteCount += packet.byteCount
    lanes[packet.track.rawValue].waiting.append(packet)
  }

  /// Records up to which time a track is known.
  mutating func note(_ track: MediaTrack, upTo time: Nanoseconds) {
    let front = lanes[track.rawValue].front ?? .min
    if time > front { lanes[track.rawValue].advanced = lanes[track.rawValue].came }
    lanes[track.rawValue].front = max(front, time)
  }

  /// Records that a track delivered something.
  mutating func noteArrival(_ track: MediaTrack, at now: Nanoseconds) { lanes[track.rawValue].came = now }

  /// Ends a track.
  mutating func end(_ track: MediaTrack) { lanes[track.rawValue].isRunning = false }

  func isRunning(_ track: MediaTrack) -> Bool { lanes[track.rawValue].isRunning }
  func front(_ track: MediaTrack) -> Nanoseconds? { lanes[track.rawValue].front }

  /// How far a track is ahead of the other, if that is running.
  func lead(_ track: MediaTrack) -> Nanoseconds {
    let other = lanes[1 - track.rawValue]
    guard other.isRunning, let front = lanes[track.rawValue].front else { return 0 }
    let first = lanes[track.rawValue].waiting.first?.time ?? front
    return front - (other.front ?? first)
  }

  /// Most bytes that wait for the other track: two seconds of 8K.
  static let maximumBytes = 64 << 20
  private var byteCount = 0

  /// Whether more of a track may be accepted: a track that is ahead waits, limited in time and in bytes.
  func hasRoom(_ track: MediaTrack, ahead limit: Nanoseconds) -> Bool {
    let lead = lead(track)
    return lead < limit && (lead <= 0 || byteCount < Self.maximumBytes)
  }

  /// The later of both ends; nil before anything arrived.
  var front: Nanoseconds? { lanes.compactMap(\.front).max() }

  // MARK: Waiting

  /// Abandons tracks whose patience has expired.
  mutating func look(at now: Nanoseconds) {
    guard let front else { return }
    patience.note(front, at: now)
    let over = patience.expired(at: now)
    for index in lanes.indices where (lanes[index].came ?? .min) + limit <= now {
      lanes[index].abandonedUntil = max(lanes[index].abandonedUntil, over)
    }
  }

  /// The time up to which a track is not waited for.
  func abandonedUntil(_ track: MediaTrack) -> Nanoseconds { lanes[track.rawValue].abandonedUntil }

  /// When the patience expires; nil if nothing waits.
  func nextExpiry(after now: Nanoseconds) -> Nanoseconds? {
    guard let front else { return nil }
    return lanes.compactMap { lane in
      guard lane.isRunning, lane.front ?? .min < front else { return nil }
      let end = (lane.came ?? .min) + limit
      return end > now ? end : patience.nextExpiry(beyond: lane.front ?? .min)
    }.min()
  }

  /// When every running track has delivered nothing new for the whole patience, if nothing arrives until then.
  var stalled: Nanoseconds { lanes.filter(\.isRunning).map { ($0.advanced ?? .min) + limit }.max() ?? .min }

  // MARK: Output

  /// The next packet that may leave.
  mutating func next() -> EncodedPacket? {
    guard let index = lanes.indices.filter({ !lanes[$0].waiting.isEmpty }).min(by: { head($0) < head($1) })
    else { return nil }
    let time = head(index)
    let other = lanes[1 - index]
    guard !other.isRunning || time <= other.front ?? .min || time <= other.abandonedUntil else { return nil }
    if origin == nil { origin = time }
    let packet = lanes[index].waiting.removeFirst()
    byteCount -= packet.byteCount
    return packet
  }

  private func head(_ index: Int) -> Nanoseconds { lanes[index].waiting.first?.time ?? .max }
}
