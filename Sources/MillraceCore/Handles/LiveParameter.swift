/// The current value of a live parameter, kept by its node.
///
/// It accepts only messages for this parameter, so no other parameter can change it:
///
/// ```swift
/// mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
///   if gain.update(from: message) { factor = pow(10, gain.value / 20) }
///   if mode.update(from: message) { reset() }
/// }
/// ```
///
/// Created by `NodeSetup.live`. An update compares two integers and uses no heap, except for a text parameter, which releases the
/// previous text.
public struct LiveParameter<Value: ParameterConvertible>: Sendable {
  /// The current value: initially that of the graph, or after a restart the last one set.
  public private(set) var value: Value
  package let index: Int
  /// Stored so that an update of a choice builds no list.
  private let choices = Value.choices

  package init(_ value: Value, index: Int) {
    self.value = value
    self.index = index
  }

  /// Takes the value from a message for this parameter. Any other message has no effect and returns false.
  public mutating func update(from message: borrowing ControlMessage) -> Bool {
    switch message {
    case .set(let parameter, let live):
      guard parameter == index, let value = value(of: live) else { return false }
      self.value = value
      return true
    default: return false
    }
  }

  private func value(of live: LiveValue) -> Value? {
    guard case .choice(let number) = live else { return Value(live: live) }
    return choices.indices.contains(number) ? choices[number] : nil
  }
}
