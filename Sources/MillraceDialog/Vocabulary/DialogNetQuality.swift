internal import MillraceJSON

/// Network quality.
public enum NetGrade: String, Sendable, Hashable, CaseIterable {
  /// From best to worst; the vendors' scales are mapped to these.
  case excellent, good, poor, veryPoor
}

/// Network quality: an index and a grade, and what was measured where the service says so.
public struct DialogNetQuality: Sendable, Hashable {
  /// From 0, the best, upwards. NetEase's index: loss in per cent / 20 · 0.5 + round trip / 1200 ms · 0.25 + deviation / 150 ms · 0.25.
  public var index: Double
  /// The grade.
  public var grade: NetGrade
  /// The vendor's id of the participant; nil: this client.
  public var peer: String?
  /// Packets lost, in per cent.
  public var lossPercent: Double?
  /// Round-trip time: the mean, in milliseconds.
  public var roundTripMilliseconds: Double?
  /// The shortest and the longest round trip, in milliseconds.
  public var leastRoundTripMilliseconds, mostRoundTripMilliseconds: Double?
  /// The mean deviation of the round-trip time, in milliseconds.
  public var deviationMilliseconds: Double?
  /// Interarrival jitter (RFC 3550 section 6.4.1), in milliseconds.
  public var jitterMilliseconds: Double?

  /// Creates a report with an index and a grade; what was measured is set afterwards.
  public init(index: Double, grade: NetGrade, peer: String? = nil) {
    self.index = index
    self.grade = grade
    self.peer = peer
  }
}

extension DialogNetQuality {
  var json: JSONValue {
    .object([
      "index": .double(index), "grade": .string(grade.rawValue), "peer": peer.map { .string($0) },
      "lossPct": lossPercent.map { .double($0) }, "rttMs": roundTripMilliseconds.map { .double($0) },
      "rttMinMs": leastRoundTripMilliseconds.map { .double($0) },
      "rttMaxMs": mostRoundTripMilliseconds.map { .double($0) },
      "mdevMs": deviationMilliseconds.map { .double($0) }, "jitterMs": jitterMilliseconds.map { .double($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      index: try form.number("index"), grade: try form.word("grade"), peer: json["peer"]?.string)
    lossPercent = json["lossPct"]?.double
    roundTripMilliseconds = json["rttMs"]?.double
    leastRoundTripMilliseconds = json["rttMinMs"]?.double
    mostRoundTripMilliseconds = json["rttMaxMs"]?.double
    deviationMilliseconds = json["mdevMs"]?.double
    jitterMilliseconds = json["jitterMs"]?.double
  }
}
