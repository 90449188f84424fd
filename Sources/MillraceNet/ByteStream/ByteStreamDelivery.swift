/// The events of a byte stream on their way to its receiver: in order, one at a time, held while the receiver pauses. On the event loop.
///
/// SwiftNIO reads on to the end once the peer has closed the connection, although reading is paused. What it read is held here, and the
/// end behind it: at most what the system had buffered.
final class ByteStreamDelivery {
  private let sink: (ByteStreamEvent) -> Void
  private var waiting: ArraySlice<ByteStreamEvent> = []
  private var last: ByteStreamEnd?
  private var hasBegun = false
  private(set) var isPaused = false
  private var isDiscarding = false
  private var isDelivering = false

  init(_ sink: @escaping (ByteStreamEvent) -> Void) { self.sink = sink }

  /// Reports `opened`, paused or not; what came before it follows.
  func begin() {
    hasBegun = true
    isDelivering = true
    sink(.opened)
    isDelivering = false
    deliverWaiting()
  }

  /// Delivers an event behind those that wait.
  func add(_ event: ByteStreamEvent) {
    guard !isDiscarding else { return }
    waiting.append(event)
    deliverWaiting()
  }

  /// Delivers the end behind the events that wait.
  func end(_ end: ByteStreamEnd) {
    last = end
    deliverWaiting()
  }

  /// Discards what waits and what still comes, except the end, which a pause no longer holds.
  func discard() {
    isDiscarding = true
    waiting = []
    deliverWaiting()
  }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    deliverWaiting()
  }

  /// The receiver may pause, resume and end the stream from within an event.
  private func deliverWaiting() {
    guard !isDelivering else { return }
    isDelivering = true
    while let event = next() { sink(event) }
    isDelivering = false
  }

  private func next() -> ByteStreamEvent? {
    guard isDiscarding || hasBegun && !isPaused else { return nil }
    if let event = waiting.popFirst() { return event }
    guard let end = last.take() else { return nil }
    return .closed(end)
  }
}
