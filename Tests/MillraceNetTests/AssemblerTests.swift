import MillraceNet
import Testing

private typealias Frame = WebSocketAssembler.Frame

private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite("frame assembly") struct AssemblerTests {
  private func steps(_ frames: [Frame], isServer: Bool = false, limit: Int = 100) -> [WebSocketAssembler.Step]
  {
    var assembler = WebSocketAssembler(isServer: isServer, limit: limit)
    return frames.map { assembler.take($0) }
  }

  @Test("fragments become one message, with control frames between them")
  func pieces() {
    #expect(
      steps([
        Frame(isFinal: false, opcode: 1, isMasked: false, payload: text("gr\u{FC}").dropLast()),
        Frame(opcode: 9, isMasked: false, payload: [1, 2]),
        Frame(isFinal: false, opcode: 0, isMasked: false, payload: []),
        Frame(opcode: 10, isMasked: false, payload: []),
        Frame(opcode: 0, isMasked: false, payload: [0xBC] + text("n")),
        Frame(opcode: 2, isMasked: false, payload: [0xFF]),
      ]) == [.nothing, .ping([1, 2]), .nothing, .pong, .text(text("grün")), .binary([0xFF])])
  }

  @Test("each protocol violation fails with its code")
  func violations() {
    func code(_ frames: [Frame], isServer: Bool = false) -> Int? {
      guard case .violation(let code, _)? = steps(frames, isServer: isServer).last else { return nil }
      return code
    }
    #expect(code([Frame(opcode: 0, isMasked: false, payload: [])]) == 1002)
    #expect(
      code([
        Frame(isFinal: false, opcode: 1, isMasked: false, payload: []),
        Frame(opcode: 2, isMasked: false, payload: []),
      ]) == 1002)
    for opcode in [3, 7, 11, 15] as [UInt8] {
      #expect(code([Frame(opcode: opcode, isMasked: false, payload: [])]) == 1002)
    }
    #expect(code([Frame(opcode: 1, isReserved: true, isMasked: false, payload: [])]) == 1002)
    #expect(code([Frame(opcode: 1, isMasked: true, payload: [])]) == 1002)
    #expect(code([Frame(opcode: 1, isMasked: false, payload: [])], isServer: true) == 1002)
    #expect(code([Frame(opcode: 1, isMasked: false, payload: [0xC3])]) == 1007)
    #expect(code([Frame(isFinal: false, opcode: 9, isMasked: false, payload: [])]) == 1002)
    #expect(code([Frame(opcode: 9, isMasked: false, payload: .init(repeating: 0, count: 126))]) == 1002)
    #expect(code([Frame(opcode: 2, isMasked: false, payload: .init(repeating: 0, count: 101))]) == 1009)
    #expect(
      code([
        Frame(isFinal: false, opcode: 2, isMasked: false, payload: .init(repeating: 0, count: 60)),
        Frame(opcode: 0, isMasked: false, payload: .init(repeating: 0, count: 41)),
      ]) == 1009)
  }

  @Test("close frames with and without a code, and with one that must not be sent")
  func closes() {
    #expect(steps([Frame(opcode: 8, isMasked: false, payload: [])]) == [.close(code: 1005, reason: "")])
    #expect(
      steps([Frame(opcode: 8, isMasked: false, payload: [0x0F, 0xA0] + text("bye"))])
        == [.close(code: 4000, reason: "bye")])
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000] {
      let payload = [UInt8(code >> 8), UInt8(code & 255)]
      guard case .violation(1002, _)? = steps([Frame(opcode: 8, isMasked: false, payload: payload)]).first
      else {
        Issue.record("\(code) was taken for a close code")
        continue
      }
    }
    #expect(
      steps([Frame(opcode: 8, isMasked: false, payload: [3])]) == [
        .violation(code: 1002, "a close code must have two bytes")
      ])
    #expect(
      steps([Frame(opcode: 8, isMasked: false, payload: [0x03, 0xE8, 0xFF])])
        == [.violation(code: 1007, "the reason of a close frame is not valid UTF-8")])
  }
}
