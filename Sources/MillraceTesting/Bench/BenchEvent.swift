internal import Foundation
public import MillraceCore

/// An event that the node posted: its JSON and its fields by name.
public struct BenchEvent: Sendable, CustomStringConvertible {
  /// The JSON text, as in a graph's log.
  public let json: String
  private let values: [String: Value]

  private enum Value: Sendable {
    case number(Double)
    case text(String)
    case bool(Bool)
  }

  init(json: String) {
    self.json = json
    var values: [String: Value] = [:]
    if let parsed = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any] {
      for (name, value) in parsed {
        switch value {
        case let text as String: values[name] = .text(text)
        // A JSON `true` is an NSNumber too; only its type distinguishes it from 1.
        case let number as NSNumber:
          values[name] =
            unsafe String(cString: number.objCType) == "c"
            ? .bool(number.boolValue) : .number(number.doubleValue)
        default: break
        }
      }
      isValid = true
    } else {
      isValid = false
    }
    self.values = values
  }

  /// True when the text is a JSON object.
  public let isValid: Bool
  /// The name of the event in the contract; empty when it has none.
  public var name: String { string("event") ?? "" }
  /// True for this event of the contract.
  public func `is`(_ event: EventContract) -> Bool { name == event.name }
  /// When it was posted, in seconds on the bench's clock; -1 when unknown.
  public var time: Double { number("time") ?? -1 }

  /// A number field; nil when it is absent or something else.
  public func number(_ name: String) -> Double? {
    if case .number(let value)? = values[name] { value } else { nil }
  }
  /// A text field; nil when it is absent or something else.
  public func string(_ name: String) -> String? {
    if case .text(let value)? = values[name] { value } else { nil }
  }
  /// A Boolean field; nil when it is absent or something else.
  public func bool(_ name: String) -> Bool? {
    if case .bool(let value)? = values[name] { value } else { nil }
  }

  public var description: String { json }
}
