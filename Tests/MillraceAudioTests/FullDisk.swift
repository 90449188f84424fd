import Glibc
import MillraceCore

@testable import MillraceAudio

/// A node whose writing to the disk a test can take over.
protocol FileWriter: Node, ~Copyable {
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem)
}

extension AudioRecord: FileWriter {}
extension AudioWrite: FileWriter {}

/// Bytes that the disk of `OnFullDisk` takes.
let fullDiskRoom = 6_000

/// A node on a disk that takes so many bytes and no more.
struct OnFullDisk<Writer: FileWriter & ~Copyable>: ~Copyable, Node {
  static var contract: NodeContract { Writer.contract }
  private var node: Writer

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    var calls = FileBytes.Calls()
    calls.write = { file, bytes, count, offset in
      guard offset + count > fullDiskRoom else { return pwrite(file, bytes, count, offset) }
      guard offset < fullDiskRoom else {
        errno = ENOSPC
        return -1
      }
      return pwrite(file, bytes, fullDiskRoom - offset, offset)
    }
    node = try Writer(setup, calls: calls)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
  borrowing func explain(_ fault: NodeFault) -> String? { node.explain(fault) }
}
