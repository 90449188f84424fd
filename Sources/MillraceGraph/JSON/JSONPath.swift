/// The path from the root of a JSON document to one of its values, as problems show it: `nodes.enc.bitrate`, `links[3].from`.
public struct JSONPath: Sendable, Hashable, CustomStringConvertible {
  /// One step down.
  public enum Step: Sendable, Hashable {
    /// To the member of an object with this key.
    case key(String)
    /// To the item of an array with this index, counted from 0.
    case index(Int)
  }

  /// The steps from the root.
  public var steps: [Step]

  /// A path with some steps; without any it is the path of the root.
  public init(_ steps: [Step] = []) {
    self.steps = steps
  }

  /// Whether it is the path of the root.
  public var isEmpty: Bool { steps.isEmpty }

  /// The path of a member of the object at this path.
  public func appending(key: String) -> JSONPath { JSONPath(steps + [.key(key)]) }

  /// The path of an item of the array at this path.
  public func appending(index: Int) -> JSONPath { JSONPath(steps + [.index(index)]) }

  /// Keys joined by dots, indices in brackets. A key with other characters than letters, digits, `_` and `-` is quoted in brackets:
  /// `nodes["a b"]`.
  public var description: String {
    var text = ""
    for step in steps {
      switch step {
      case .index(let index): text += "[\(index)]"
      case .key(let key) where Self.isPlain(key): text += text.isEmpty ? key : ".\(key)"
      case .key(let key): text += "[\(Problem.quoted(key))]"
      }
    }
    return text
  }

  private static func isPlain(_ key: String) -> Bool {
    !key.isEmpty
      && key.unicodeScalars.allSatisfy { scalar in
        scalar == "_" || scalar == "-" || scalar.properties.isAlphabetic
          || scalar.properties.numericType != nil
      }
  }
}
