internal import MillraceAudio
internal import MillraceCore

/// Encoded pictures and sound on their way into one stream, in the order of their times.
///
/// A packet may leave when the other track is known as far, has ended, or is given up: when it brought nothing for the whole
/// patience while the packet waited. One that comes slowly, from a film that is hard to decode, is not given up.
struct FilmTracks {
  private struct Lane {
    var waiting: [EncodedPacket] = []
    /// Up to when everything of it was given; nil: nothing yet.
    var front: Nanoseconds?
    var isRunning: Bool
    /// When something of it came last, on the graph clock.
    var came: Nanoseconds?
    /// Up to when nobody waits for it any longer.
    var givenUp = Nanoseconds.min
  }

  private var lanes: [Lane]
  private let limit: Nanoseconds
  private var patience: WaitLimit
  /// Time of the first packet that left: the film's 0.
  private(set) var origin: Nanoseconds?

  init(sound: Bool, patience: Nanoseconds) {
    lanes = [Lane(isRunning: true), Lane(isRunning: sound)]
    limit = patience
    self.patience = WaitLimit(patience)
  }

  // MARK: In

  mutating func put(_ packet: EncodedPacket) {
    byteCount += packet.byteCount
    lanes[packet.track.rawValue].waiting.append(packet)
  }

  /// Notes up to when a track is known.
  mutating func note(_ track: FilmTrack, upTo time: Nanoseconds) {
    lanes[track.rawValue].front = max(lanes[track.rawValue].front ?? .min, time)
  }

  /// Notes that something of a track has come.
  mutating func noteArrival(_ track: FilmTrack, at now: Nanoseconds) { lanes[track.rawValue].came = now }

  /// Nothing more comes of a track.
  mutating func end(_ track: FilmTrack) { lanes[track.rawValue].isRunning = false }

  func isRunning(_ track: FilmTrack) -> Bool { lanes[track.rawValue].isRunning }
  func front(_ track: FilmTrack) -> Nanoseconds? { lanes[track.rawValue].front }

  /// How far a track is ahead of the other, if that runs.
  func lead(_ track: FilmTrack) -> Nanoseconds {
    let other = lanes[1 - track.rawValue]
    guard other.isRunning, let front = lanes[track.rawValue].front else { return 0 }
    let first = lanes[track.rawValue].waiting.first?.time ?? front
    return front - (other.front ?? first)
  }

  /// Bytes that may wait for the other track: two seconds of 8K.
  static let mostBytes = 64 << 20
  private var byteCount = 0

  /// Whether more of a track may be taken: one that is ahead of the other waits for it, so much and so many bytes ahead.
  func hasRoom(_ track: FilmTrack, ahead limit: Nanoseconds) -> Bool {
    let lead = lead(track)
    return lead < limit && (lead <= 0 || byteCount < Self.mostBytes)
  }

  /// The later of both fronts; nil before anything came.
  var front: Nanoseconds? { lanes.compactMap(\.front).max() }

  // MARK: Waiting

  /// Gives up what has been waited for long enough.
  mutating func look(at now: Nanoseconds) {
    guard let front else { return }
    patience.note(front, at: now)
    let over = patience.expired(at: now)
    for index in lanes.indices where (lanes[index].came ?? .min) + limit <= now {
      lanes[index].givenUp = max(lanes[index].givenUp, over)
    }
  }

  /// Up to when a track is not waited for any longer.
  func givenUp(_ track: FilmTrack) -> Nanoseconds { lanes[track.rawValue].givenUp }

  /// When the patience with what is missing ends; nil when nothing waits.
  func nextExpiry(after now: Nanoseconds) -> Nanoseconds? {
    guard let front else { return nil }
    return lanes.compactMap { lane in
      guard lane.isRunning, lane.front ?? .min < front else { return nil }
      let end = (lane.came ?? .min) + limit
      return end > now ? end : patience.nextExpiry(beyond: lane.front ?? .min)
    }.min()
  }

  // MARK: Out

  /// The next packet that may leave.
  mutating func next() -> EncodedPacket? {
    guard let index = lanes.indices.filter({ !lanes[$0].waiting.isEmpty }).min(by: { head($0) < head($1) })
    else { return nil }
    let time = head(index)
    let other = lanes[1 - index]
    guard !other.isRunning || time <= other.front ?? .min || time <= other.givenUp else { return nil }
    if origin == nil { origin = time }
    let packet = lanes[index].waiting.removeFirst()
    byteCount -= packet.byteCount
    return packet
  }

  private func head(_ index: Int) -> Nanoseconds { lanes[index].waiting.first?.time ?? .max }
}
