/// The present value of a live parameter, held by its node.
///
/// It takes a message only when the message is for this parameter, so that no other one can change it:
///
/// ```swift
/// mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
///   if gain.update(from: message) { factor = pow(10, gain.value / 20) }
///   if mode.update(from: message) { reset() }
/// }
/// ```
///
/// Made by `NodeSetup.live`. An update compares two integers: no heap and no text, except for a parameter that is a text, which
/// releases the one before.
public struct LiveParameter<Value: ParameterConvertible>: Sendable {
  /// The value that is valid now: at first the one of the graph, or the last one set when the node was restarted.
  public private(set) var value: Value
  package let index: Int
  /// Kept, so that an update of a choice builds no list.
  private let choices = Value.choices

  package init(_ value: Value, index: Int) {
    self.value = value
    self.index = index
  }

  /// Takes the value of a message to this parameter. False for every other message, which changes nothing.
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
