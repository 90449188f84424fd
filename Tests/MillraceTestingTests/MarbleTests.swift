import MillraceCore
import MillraceTesting
import Testing

private let letters = OutputShape(.text, packetDuration: nil, packetBytes: 16)

@Suite("marble lines") struct MarbleTests {
  @Test(
    "a node one packet late draws its input one packet late",
    arguments: [
      ("a-b--|", "--a--(b|)"), ("a-b-(cd)-|", "--a-(bc)-(d|)"), ("(abc)-d|", "(ab)-c(d|)"), ("|", "|"),
      ("a---", "----"), ("", ""),
    ])
  func late(input: String, output: String) throws {
    let bench = try NodeBench(Keeper.self, inputs: ["in": letters])
    #expect(bench.marbles(input) == output)
  }

  @Test("timers fire on their ticks and appear in the tail")
  func timers() throws {
    let bench = try NodeBench(Ticker.self, ["count": 3])
    #expect(bench.marbles([:], tick: .milliseconds(10), tail: 9) == "a-b-c-|")
  }

  @Test("several inputs are played in parallel")
  func several() throws {
    let bench = try NodeBench(Pairer.self, inputs: ["in1": letters, "in2": letters])
    #expect(bench.marbles(["in1": "ab-c--|", "in2": "--x-y-|"]) == "--a-b-(c|)")
  }

  @Test("samples have an alphabet; an interruption and a fault are drawn")
  func samples() throws {
    let shape = OutputShape.pcm(rate: 8000, channels: 1, sample: .s16, frames: 160)
    let bench = try NodeBench(Scaler.self, ["factor": 2], inputs: ["in": shape])
    #expect(bench.marbles("5--!--5|", alphabet: .int16(frames: 160)) == "j-----5|")
    let unlucky = MarbleAlphabet(
      packet: { CapturedPacket(bytes: $0 == "x" ? [13, 0] : [1, 0]) }, letter: { _ in "o" })
    let failing = try NodeBench(Scaler.self, inputs: ["in": shape])
    #expect(failing.marbles("a(bx)cd", alphabet: unlucky) == "o(o#)")
  }
}
