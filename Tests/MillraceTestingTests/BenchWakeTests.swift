import Dispatch
import MillraceCore
import Synchronization
import Testing

@testable import MillraceTesting

/// Emits one text after its own thread has requested a call.
struct ThreadedNode: Node {
  static let contract = NodeContract(
    "test.doze", "speaks when woken", outputs: [PortContract("out", .kind(.text), text: "a word")],
    drive: .itself,
    resolve: { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 8) })

  private final class Signal: Sendable {
    let hasRung = Atomic(false)
  }
  private let bell = Signal()
  private let waker: Waker
  private var calls = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { waker = setup.waker }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    calls += 1
    guard calls > 1 else {
      let (bell, waker) = (bell, waker)
      DispatchQueue.global().async {
        bell.hasRung.store(true, ordering: .releasing)
        waker.wake()
      }
      return .done
    }
    guard bell.hasRung.load(ordering: .acquiring) else { return .done }
    var packet = try ports.makePacket(bytes: 1, of: .none)
    var text = packet.mutableSamples(of: UInt8.self)
    text[0] = UInt8(ascii: "a")
    ports.emit(packet)
    return .ended
  }
}

@Suite("Wake-ups by a node's own threads", .timeLimit(.minutes(30)))
struct BenchWakeTests {
  @Test("any number of wake-ups before a take count as one")
  func takenOnce() {
    let wakes = BenchWake()
    #expect(!wakes.take())
    wakes.wake(0)
    wakes.wake(0)
    #expect(wakes.take())
    #expect(!wakes.take())
  }

  @Test("a wait ends with a wake-up, also an earlier one, and otherwise times out")
  func waiting() {
    let wakes = BenchWake()
    #expect(!wakes.wait(1))
    wakes.wake(0)
    wakes.wake(0)
    #expect(wakes.wait(0))
    // Two wake-ups without a take in between signal once.
    #expect(!wakes.wait(0))
    #expect(wakes.take())
    wakes.wake(0)
    #expect(wakes.wait(0))
  }

  @Test("a bench calls a node again when the node's own thread requests it")
  func calledAgain() throws {
    let bench = try NodeBench(ThreadedNode.self, clock: .realtime)
    #expect(try bench.wait(60) { bench.hasEnded })
    #expect(bench.texts() == ["a"])
    #expect(bench.close() == [])
  }
}
