import Glibc
import MillraceCore

@testable import MillraceAudio

/// A node whose disk writes a test can replace.
protocol FileWriter: Node, ~Copyable {
  init(_ setup: borrowing NodeSetup, calls: FileBytes.Calls) throws(NodeProblem)
}

extension AudioRecord: FileWriter {}
extension AudioWrite: FileWriter {}

/// Capacity of the disk of `OnFullDisk` in bytes.
let fullDiskRoom = 6_000

/// A node on a disk of limited capacity.
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
