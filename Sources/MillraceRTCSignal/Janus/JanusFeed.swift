internal import MillraceDialog
internal import MillraceJSON

/// A publisher of a video room, and what is received of it.
struct JanusFeed: Sendable {
  /// A stream that is published.
  struct Stream: Hashable, Sendable {
    /// Nil: a server before version 1.0 does not say.
    var mid: String?
    var track: DialogTrack
  }

  /// Streams of a publisher that are kept at most.
  private static let mostStreams = 32

  var streams: [Stream] = []
  /// The tracks that this side wants.
  var wanted: Set<DialogTrack>
  /// The session and the handle; nil: nothing is received.
  var session: Int?
  /// Janus has offered the session.
  var isOffered = false
  /// Streams that were asked for.
  var subscribed: Set<Stream> = []
  /// The streams of the session: their mids on this side.
  var received: [Stream] = []
  /// The session has failed or was given up; not tried again until the publisher changes or a command wants it.
  var hasFailed = false

  init(wanted: Set<DialogTrack>) { self.wanted = wanted }

  /// The streams that are there and wanted.
  var wishes: [Stream] { streams.filter { wanted.contains($0.track) } }

  /// Reads what a publisher sends from its entry.
  static func streams(_ entry: JSONValue) -> [Stream] {
    guard let list = entry["streams"]?.array else {
      let audio = entry["audio_codec"]?.string.map { _ in Stream(mid: nil, track: .audio) }
      let video = entry["video_codec"]?.string.map { _ in Stream(mid: nil, track: .video) }
      return [audio, video].compactMap { $0 }
    }
    return list.prefix(mostStreams).compactMap { stream in
      stream["disabled"]?.bool == true ? nil : read(stream)
    }
  }

  /// Reads the streams of a session.
  static func received(_ data: JSONValue) -> [Stream] {
    (data["streams"]?.array ?? []).prefix(mostStreams).compactMap { read($0) }
  }

  private static func read(_ stream: JSONValue) -> Stream? {
    guard let type = stream["type"]?.string, let track = DialogTrack(rawValue: type),
      track == .audio || track == .video
    else { return nil }
    return Stream(mid: stream["mid"]?.string, track: track)
  }

  /// The entry of a request for a stream.
  static func json(_ id: JanusID, _ stream: Stream) -> JSONValue {
    .object(["feed": id.json, "mid": stream.mid.map { .string($0) }])
  }
}
