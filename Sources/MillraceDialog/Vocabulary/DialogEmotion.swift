internal import MillraceJSON

/// An emotion, shown from one time of a reply to another.
public struct DialogEmotion: Sendable, Hashable {
  /// The vendor's name of the emotion.
  public var name: String
  /// From the reply's first sample.
  public var startMilliseconds: Int
  /// Nil: to the end.
  public var endMilliseconds: Int?

  /// Creates an emotion; times in milliseconds.
  public init(_ name: String, startMilliseconds: Int, endMilliseconds: Int? = nil) {
    self.name = name
    self.startMilliseconds = startMilliseconds
    self.endMilliseconds = endMilliseconds
  }
}

extension DialogEmotion {
  var json: JSONValue {
    .object([
      "name": .string(name), "startMs": .integer(startMilliseconds),
      "endMs": endMilliseconds.map { .integer($0) },
    ])
  }

  static func steps(_ form: JSONForm) throws(JSONFormProblem) -> [DialogEmotion] {
    var result: [DialogEmotion] = []
    for step in try form.array("steps") {
      result.append(
        DialogEmotion(
          try step.string("name"), startMilliseconds: try step.integer("startMs"),
          endMilliseconds: step.json["endMs"]?.integer))
    }
    return result
  }
}
