public import MillraceConformance
public import MillraceCore
public import MillraceDialog
internal import MillraceGraph
public import MillraceJSON

/// What a double has observed and done.
///
/// Counts are kept however long the double runs. Of the lists, `violations` is bounded, and the others stay empty, or keep only the latest
/// element, when the scenario's `keeps` is false. `DoubleServer` sees to that in its methods; a double that has something else to add to a
/// list asks for `keeps` itself.
public struct DoubleReport: Sendable, Hashable {
  /// The most violations kept: further ones of the same client are alike.
  public static let mostViolations = 1_000

  /// Messages of clients and events of the double, in order: `> Start`, `< Listening`.
  public var lines: [String] = []
  /// The first violations, at most `mostViolations`.
  public private(set) var violations: [Violation] = []
  /// The number of violations, including those that are not kept.
  public private(set) var violationCount = 0
  /// Connections attempted, including refused ones.
  public var connections = 0
  /// Sessions closed properly by clients.
  public var stops = 0
  /// What clients opened their sessions with; without `keeps` only the latest.
  public var starts: [JSONValue] = []

  /// Binary messages with the user's audio.
  public var framesHeard = 0
  /// Bytes of the user's audio.
  public var bytesHeard = 0
  /// PCM samples of it that are not silence.
  public var speechSamples = 0
  /// Audio messages whose arrival was compared with the time they are due (`FrameTiming`).
  public var framesTimed = 0
  /// Those that arrived later than `FrameTiming.tolerance`.
  public var framesLate = 0
  /// The delay of the latest of them in milliseconds.
  public var latest = 0.0

  /// Images received.
  public var pictures = 0
  /// Images received before the double had answered the request to send any.
  public var earlyPictures = 0
  /// Bytes of the largest image, in the encoding in which it was received.
  public var largestPicture = 0
  /// When images arrived, on the monotonic clock.
  public var pictureTimes: [Nanoseconds] = []

  /// Turns of the scenario that have begun.
  public var begun = 0
  /// Replies that were started.
  public var replies = 0
  /// Replies that were played to their end, as clients reported.
  public var turns = 0
  /// The audio of replies, as it was sent.
  public var soundSent: [UInt8] = []
  /// Bytes of audio sent for each reply.
  public var replyBytes: [Int: Int] = [:]
  /// Unknown messages that were sent.
  public var unknownMessages: [JSONValue] = []
  /// What was reported to the client besides states, speech and replies, as its node has to post it (`ServiceReport.events`): for a
  /// service with gates, things to display, participants, keys that expire, or reasons of a kick.
  public var events: [DialogEvent] = []
  /// Addresses of streams with replies, as they were reported.
  public var streams: [String] = []
  /// How often a fresh key was accepted.
  public var renewals = 0

  /// Creates an empty report.
  public init() {}

  /// Counts a violation, and keeps it while there is room.
  public mutating func add(_ violation: Violation) {
    violationCount += 1
    if violations.count < Self.mostViolations { violations.append(violation) }
  }

  /// The report as a JSON object in one line, as `--report` writes it. `violationCount` includes violations that are not listed.
  public var json: String {
    var writer = JSONWriter()
    writer.object { json in
      json.member("connections", connections)
      json.member("turns", turns)
      json.member("frames", framesHeard)
      json.member("framesTimed", framesTimed)
      json.member("framesLate", framesLate)
      json.member("latestMs", latest)
      json.member("pictures", pictures)
      json.member("largestPicture", largestPicture)
      json.member("violationCount", violationCount)
      json.array("violations") { list in
        for violation in violations { list.value(violation.description) }
      }
    }
    return writer.text
  }

  /// Discards the lists that grow during a dialogue. Kept are counts, violations, and what sessions were opened with.
  mutating func forget() {
    lines = []
    pictureTimes = []
    soundSent = []
    replyBytes = [:]
    unknownMessages = []
    events = []
    streams = []
  }
}

extension ServiceReport {
  /// The part of a double's report that the conformance suite checks.
  public init(_ report: DoubleReport) {
    self.init()
    connections = report.connections
    turns = report.begun
    audioBytes = report.replyBytes
    sessionEnds = report.stops
    speechSamples = report.speechSamples
    unknownMessages = report.unknownMessages
    events = report.events
    streams = report.streams
    renewals = report.renewals
    violations = report.violations.map(\.description)
  }
}
