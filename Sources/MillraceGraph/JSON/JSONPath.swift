/// The way from the root of a JSON document to one of its values, as problems show it: `nodes.enc.bitrate`, `links[3].from`.
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

  /// A path of some steps; without any it is the root.
  public init(_ steps: [Step] = []) {
    self.steps = steps
  }

  /// Whether it is the root itself.
  public var isEmpty: Bool { steps.isEmpty }

  /// The path to a member of the object this path leads to.
  public func appending(key: String) -> JSONPath { JSONPath(steps + [.key(key)]) }

  /// The path to an item of the array this path leads to.
  public func appending(index: Int) -> JSONPath { JSONPath(steps + [.index(index)]) }

  /// Keys joined by dots and indices in brackets; keys that are not plain names stand quoted in brackets: `nodes["a b"]`.
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
