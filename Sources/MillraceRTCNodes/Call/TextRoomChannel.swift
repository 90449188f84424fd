internal import MillraceDialog
internal import MillraceRTCSignal

/// The data channel of Janus' text room: joins when it is open, and turns texts into its messages and back.
struct TextRoomChannel {
  /// What a received message means.
  enum Outcome {
    case text(String)
    case event(DialogEvent)
    /// The session is of no use any more.
    case failed(DialogError)
  }

  static let label = TextRoom.channel

  private var room: TextRoom
  /// Texts may be sent.
  private(set) var hasJoined = false

  init(_ room: TextRoom) { self.room = room }

  /// The request to join, for a channel that is open.
  mutating func join() -> [UInt8] { Array(room.join().utf8) }

  /// The channel is gone.
  mutating func close() { hasJoined = false }

  /// A text for everybody.
  mutating func message(_ text: [UInt8]) -> [UInt8] {
    Array(room.message(String(decoding: text, as: UTF8.self)).text.utf8)
  }

  /// Reads what has come. A text is also an event, which names its sender.
  mutating func read(_ bytes: [UInt8]) -> [Outcome] {
    var outcomes: [Outcome] = []
    for outcome in room.read(bytes) {
      switch outcome {
      case .joined: hasJoined = true
      case .failed(let error): outcomes.append(.failed(error))
      case .sent(_, let error?): outcomes.append(.event(.error(error)))
      case .sent(_, nil): break
      case .event(let event):
        outcomes.append(.event(event))
        if case .data(let data) = event, case .text(let text) = data.content { outcomes.append(.text(text)) }
      }
    }
    return outcomes
  }
}
