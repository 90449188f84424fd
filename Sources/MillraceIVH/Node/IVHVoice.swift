internal import MillraceJSON

/// The packets of an utterance of voice: they have one id, and numbers from 1. Shared by the
/// endpoint and its wire, which are on one event loop.
final class IVHVoice: @unchecked Sendable {
  private let generation: IVHGeneration
  /// The session that voice belongs to; nil: none.
  var session: String?
  private var id = ""
  private var number = 0

  init(_ generation: IVHGeneration) { self.generation = generation }

  /// The message for a packet; empty without a session.
  func message(for bytes: [UInt8]) -> [UInt8] {
    guard let session else { return [] }
    if number == 0 { id = IVHID.make() }
    number += 1
    return IVHCommand.audio(bytes, number: number, id: id).frame(session: session, generation).bytes
  }

  /// The message that ends the utterance; empty where none was begun.
  /// - Parameter isCut: discards what was sent and not yet spoken.
  func end(isCut: Bool) -> [UInt8] {
    guard number > 0, let session else { return [] }
    number += 1
    let command =
      isCut && generation == .session
      ? IVHCommand.audioInterruption(number: number, id: id) : IVHCommand.audio([], number: number, id: id)
    number = 0
    return command.frame(session: session, generation).bytes
  }

  /// Forgets an utterance that was begun.
  func reset() { number = 0 }
}
