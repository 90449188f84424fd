internal import MillraceCore
internal import MillraceDialog
internal import Synchronization

/// The state shared by the suite's nodes in a graph and the running case: the record, and what the user does.
final class CaseState: Sendable {
  let number: Int
  let double: any ServiceDouble.Type
  let record = Locked(ServiceRecord())
  /// Frames of 20 ms in which the user is still to speak.
  let speechFrames = Atomic<Int>(0)
  /// Frames of silence since the user last spoke.
  let silentFrames = Atomic<Int>(0)
  /// The user's audio ends.
  let isAudioOver = Atomic<Bool>(false)
  /// The user node ends.
  let isOver = Atomic<Bool>(false)
  /// Playback finishes every reply at once; false: replies keep playing.
  let finishesReplies = Atomic<Bool>(true)

  private static let stages = Locked<(next: Int, all: [Int: CaseState])>((1, [:]))

  init(_ double: any ServiceDouble.Type) {
    self.double = double
    number = Self.stages.withLock { stages in
      stages.next += 1
      return stages.next
    }
    Self.stages.withLock { $0.all[number] = self }
  }

  /// Removes it: nodes created from here on do not find it.
  func leave() { Self.stages.withLock { $0.all[number] = nil } }

  static func find(_ number: Int) throws(NodeProblem) -> CaseState {
    guard let stage = stages.withLock({ $0.all[number] }) else { throw NodeProblem("unknown case \(number)") }
    return stage
  }

  func note(_ entry: ServiceRecord.Entry) { record.withLock { $0.entries.append(entry) } }
}
