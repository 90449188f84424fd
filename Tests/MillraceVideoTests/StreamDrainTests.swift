import MillraceCore
import Testing

@testable import MillraceVideo

@Suite("a stream while the graph drains") struct StreamDrainTests {
  private let second: Nanoseconds = 1_000_000_000

  @Test("it ends a minute after the beginning, or after the last sound")
  func ends() {
    var drain = StreamDrain()
    drain.noteSound(at: 5 * second)
    #expect(!drain.isOn)
    #expect(drain.end(at: 100 * second) == 160 * second && drain.isOn)
    #expect(drain.end(at: 130 * second) == 160 * second)
    drain.noteSound(at: 150 * second)
    #expect(drain.end(at: 151 * second) == 210 * second)
  }
}
