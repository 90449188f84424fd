/// Observes the audio of a double, for measurements. Called on the network thread, before anything else is done with the audio, so a
/// callback must return within microseconds.
public struct AudioObserver: Sendable {
  /// Called for each audio message received.
  public var received: (@Sendable ([UInt8]) -> Void)?
  /// Called for each audio message sent.
  public var sent: (@Sendable ([UInt8]) -> Void)?
  /// Called when a user's voice or a client's request cuts off a reply, before the client is notified.
  public var interrupted: (@Sendable () -> Void)?

  /// Creates an observer without callbacks.
  public init() {}
}
