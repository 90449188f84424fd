import CSpeexDSP
import MillraceDSP

/// The echo canceller next to libspeexdsp (with its residual suppression, which needs its noise suppression) and next to none: echo
/// return loss enhancement from 5 s on, processor time per second of audio and per block of 8 ms. All get the same synthetic room.
enum EchoRows {
  private static let seconds = 12.0
  private static let rounds = 5

  static func run() -> [Figure] {
    let room = EchoRoom(seconds: seconds)
    let contestants: [(name: String, work: (EchoRoom) -> [Float], goal: String)] = [
      ("millrace", own, "<= 6"), ("speexdsp", speex, ""),
    ]
    var figures = [depth(room, room.near, of: "none")]
    var costs: [[Double]] = contestants.map { _ in [] }
    var outputs: [[Float]] = contestants.map { _ in [] }
    // In turns, so that a disturbance affects both.
    for _ in 0..<rounds {
      for (index, contestant) in contestants.enumerated() {
        let start = processorSeconds()
        outputs[index] = contestant.work(room)
        costs[index].append((processorSeconds() - start) * 1e3 / seconds)
      }
    }
    for (index, contestant) in contestants.enumerated() {
      figures.append(depth(room, outputs[index], of: contestant.name))
      figures.append(
        Figure(
          "front-end", "echo: processor", of: contestant.name, unit: "ms/s", goal: contestant.goal,
          samples: costs[index]))
      figures.append(
        Figure(
          "front-end", "echo: a block of 8 ms", of: contestant.name, unit: "us",
          samples: costs[index].map { $0 * 8 }))
    }
    return figures
  }

  private static func depth(_ room: EchoRoom, _ output: [Float], of name: String) -> Figure {
    Figure(
      "front-end", "echo: return loss enhancement from 5 s", of: name, unit: "dB",
      goal: name == "millrace" ? ">= 38" : "", samples: [room.echoReturn(output, from: 5)])
  }

  private static func own(_ room: EchoRoom) -> [Float] {
    var canceller = EchoCanceller(EchoSettings(rate: EchoRoom.rate))
    let block = canceller.blockFrames
    var output: [Float] = []
    output.reserveCapacity(room.near.count)
    var cleaned = [Float](repeating: 0, count: block)
    for first in stride(from: 0, to: room.near.count - block + 1, by: block) {
      let place = first..<first + block
      var target = cleaned.mutableSpan
      canceller.process(
        near: room.near.span.extracting(place), far: room.far.span.extracting(place), into: &target)
      output += cleaned
    }
    return output + [Float](repeating: 0, count: room.near.count - output.count)
  }

  private static func speex(_ room: EchoRoom) -> [Float] {
    // 10 ms and a quarter of a second, as in libspeexdsp's own example.
    let (block, rate) = (160, Int32(EchoRoom.rate))
    let echo = unsafe speex_echo_state_init(Int32(block), rate / 4)
    let cleaner = unsafe speex_preprocess_state_init(Int32(block), rate)
    defer {
      unsafe speex_preprocess_state_destroy(cleaner)
      unsafe speex_echo_state_destroy(echo)
    }
    var hertz = rate
    unsafe speex_echo_ctl(echo, SPEEX_ECHO_SET_SAMPLING_RATE, &hertz)
    unsafe speex_preprocess_ctl(cleaner, SPEEX_PREPROCESS_SET_ECHO_STATE, UnsafeMutableRawPointer(echo))
    let near = room.near.map { Int16(max(-32_768, min(32_767, ($0 * 32_768).rounded()))) }
    let far = room.far.map { Int16(max(-32_768, min(32_767, ($0 * 32_768).rounded()))) }
    var cleaned = [Int16](repeating: 0, count: block)
    var output: [Float] = []
    output.reserveCapacity(near.count)
    for first in stride(from: 0, to: near.count - block + 1, by: block) {
      unsafe speex_echo_cancellation(
        echo, Array(near[first..<first + block]), Array(far[first..<first + block]), &cleaned)
      unsafe speex_preprocess_run(cleaner, &cleaned)
      output += cleaned.map { Float($0) / 32_768 }
    }
    return output + [Float](repeating: 0, count: near.count - output.count)
  }
}
