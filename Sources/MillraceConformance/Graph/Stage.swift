internal import MillraceCore
internal import MillraceDialog
internal import Synchronization

/// What the kit's nodes in a graph and the kit itself share: the record, and what the user does.
final class Stage: Sendable {
  let number: Int
  let double: any ServiceDouble.Type
  let record = Locked(ServiceRecord())
  /// Frames of 20 ms that the user still speaks for.
  let loudFrames = Atomic<Int>(0)
  /// The user's sound ends for good.
  let isSoundOver = Atomic<Bool>(false)
  /// The user leaves.
  let isOver = Atomic<Bool>(false)
  /// Playback tells of ends as soon as they come; false: it goes on playing.
  let playsOn = Atomic<Bool>(true)

  private static let stages = Locked<(next: Int, all: [Int: Stage])>((1, [:]))

  init(_ double: any ServiceDouble.Type) {
    self.double = double
    number = Self.stages.withLock { stages in
      stages.next += 1
      return stages.next
    }
    Self.stages.withLock { $0.all[number] = self }
  }

  /// Nodes of a graph that is made from here on do not find it any more.
  func leave() { Self.stages.withLock { $0.all[number] = nil } }

  static func find(_ number: Int) throws(NodeProblem) -> Stage {
    guard let stage = stages.withLock({ $0.all[number] }) else { throw NodeProblem("there is no such case") }
    return stage
  }

  func note(_ entry: ServiceRecord.Entry) { record.withLock { $0.entries.append(entry) } }
}
