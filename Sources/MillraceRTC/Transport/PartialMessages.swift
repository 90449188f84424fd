/// The messages of an SCTP association that have begun and are not complete, by their stream.
///
/// The peer decides how many begin. Together they take at most `room` bytes: one for which there is no room is dropped, like one that is
/// larger than `largest`.
struct PartialMessages {
  /// What became of a part.
  enum Outcome: Equatable {
    /// More of its message is to come.
    case incomplete
    case message([UInt8])
    /// Its message is complete, and was dropped: its bytes.
    case dropped(Int)
  }

  private struct Message {
    var bytes: [UInt8] = []
    /// Bytes that have come.
    var count = 0
    var isDropped = false
  }

  /// Bytes of the largest message.
  private let largest: Int
  private let room: Int
  private var messages: [UInt16: Message] = [:]
  /// Bytes of all messages.
  private(set) var held = 0

  init(largest: Int, room: Int) {
    self.largest = largest
    self.room = room
  }

  /// Adds the next part of the message on a stream.
  mutating func add(_ bytes: some Collection<UInt8>, stream: UInt16, isEnd: Bool) -> Outcome {
    var message = messages.removeValue(forKey: stream) ?? Message()
    held -= message.bytes.count
    message.count += bytes.count
    // What is complete does not wait.
    if message.count > largest || !isEnd && held + message.count > room { message.isDropped = true }
    if message.isDropped { message.bytes = [] } else { message.bytes.append(contentsOf: bytes) }
    guard isEnd else {
      held += message.bytes.count
      messages[stream] = message
      return .incomplete
    }
    return message.isDropped ? .dropped(message.count) : .message(message.bytes)
  }

  /// The rest of the message on a stream does not come.
  mutating func remove(_ stream: UInt16) {
    if let message = messages.removeValue(forKey: stream) { held -= message.bytes.count }
  }

  mutating func removeAll() {
    messages = [:]
    held = 0
  }
}
