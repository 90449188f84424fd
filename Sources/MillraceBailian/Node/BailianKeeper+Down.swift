internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// From the service to the node.
extension BailianKeeper {
  func post(_ event: DialogEvent) {
    heldEvents.append(BailianExchange.In.event, EventRecord.bytes(event, limit: eventBytes))
    if case .reply(let reply) = event, reply.isFinal, !reply.text.isEmpty {
      for piece in Self.pieces(reply.text, most: eventBytes) {
        heldEvents.append(BailianExchange.In.text, piece)
      }
    }
    handOn()
  }

  /// A text in pieces of so many bytes at most, each of whole characters.
  static func pieces(_ text: String, most: Int) -> [[UInt8]] {
    let bytes = Array(text.utf8)
    var result: [[UInt8]] = []
    var start = 0
    while start < bytes.count {
      var end = min(start + most, bytes.count)
      // Bytes 10xxxxxx go on with a character.
      while end < bytes.count && bytes[end] & 0xC0 == 0x80 { end -= 1 }
      result.append(Array(bytes[start..<end]))
      start = end
    }
    return result
  }

  /// Bytes of the longest packet of Opus that is handed on: six frames of 1,275 and their lengths, 120 ms.
  static let mostPacket = 7_680

  func hold(_ kind: UInt8, _ bytes: [UInt8]) {
    if sound.hasPackets && bytes.count > Self.mostPacket {
      return post(
        .error(
          DialogError(
            vendor: "bailian", category: .internal, reaction: .goOn,
            text: "a frame of \(bytes.count) bytes is no packet of Opus; it is not played")))
    }
    var rest = bytes[...]
    repeat {
      let piece = Array(rest.prefix(BailianExchange.soundBytes))
      rest = rest.dropFirst(piece.count)
      heldSounds.append(kind, piece)
    } while !rest.isEmpty
    handOn()
  }

  /// Hands on what the node has room for. Nothing more is read while much too much waits, and an end is told behind all of it.
  func handOn() {
    let events = heldEvents.move(to: exchange.events)
    let sounds = heldSounds.move(to: exchange.sounds)
    if events || sounds { exchange.waker.wake() }
    if heldEvents.isEmpty && heldSounds.isEmpty, let conclusion {
      self.conclusion = nil
      exchange.end.tell(conclusion.failure)
    }
    let isTooMuch = heldSounds.bytes > Self.mostSound || heldEvents.count > Self.mostEvents
    guard isTooMuch != isPaused else { return }
    isPaused = isTooMuch
    if isPaused { socket?.pause() } else { socket?.resume() }
  }
}
