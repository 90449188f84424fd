/// Feeds arbitrary frames to the assembler of WebSocket messages. Three bytes give the bits, opcode and length of each frame, and its
/// payload follows. The first byte of the input selects the role and the largest message.
///
/// The assembler must never crash. Its messages must be complete and within the limit, and texts must be UTF-8. Violations must have close
/// codes that may be sent. The result must not depend on how messages are split into frames.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrames(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))[...]
  guard let first = bytes.popFirst() else { return 0 }
  let isServer = first & 1 != 0
  let limit = Int(first >> 1) * 4
  let frames = frames(bytes, isServer: isServer)
  let result = steps(of: frames, isServer: isServer, limit: limit)
  let model = modelled(frames, isServer: isServer, limit: limit)
  if result != model { fatalError("\(result) instead of \(model)") }
  for step in result { check(step, limit: limit) }
  for pieces in [2, 3]
  where steps(of: split(frames, into: pieces), isServer: isServer, limit: limit) != result {
    fatalError("the result depends on how messages are split: \(result)")
  }
  return 0
}

private typealias Frame = WebSocketAssembler.Frame
private typealias Step = WebSocketAssembler.Step

private func frames(_ bytes: ArraySlice<UInt8>, isServer: Bool) -> [Frame] {
  var rest = bytes
  var result: [Frame] = []
  while let bits = rest.popFirst(), let opcode = rest.popFirst(), let length = rest.popFirst() {
    let payload = Array(rest.prefix(Int(length)))
    rest = rest.dropFirst(payload.count)
    result.append(
      Frame(
        isFinal: bits & 1 != 0, opcode: opcode & 0x0F, isReserved: bits & 0xE0 == 0xE0,
        isMasked: (bits & 0x1E == 0x1E) != isServer, payload: payload))
  }
  return result
}

/// All steps up to the first violation, without those of `.nothing`.
private func steps(of frames: [Frame], isServer: Bool, limit: Int) -> [Step] {
  var assembler = WebSocketAssembler(isServer: isServer, limit: limit)
  var result: [Step] = []
  for frame in frames {
    let step = assembler.take(frame)
    if step != .nothing { result.append(step) }
    if case .violation = step { break }
  }
  return result
}

/// The messages of a sequence according to RFC 6455 section 5.4. Control frames and violations come from a new assembler per frame.
private func modelled(_ frames: [Frame], isServer: Bool, limit: Int) -> [Step] {
  var result: [Step] = []
  var message: (opcode: UInt8, payload: [UInt8])?
  for frame in frames {
    let alone = steps(
      of: [
        Frame(
          isFinal: frame.isFinal, opcode: frame.opcode == 0 ? 2 : frame.opcode, isReserved: frame.isReserved,
          isMasked: frame.isMasked, payload: frame.opcode < 8 ? [] : frame.payload)
      ], isServer: isServer, limit: limit)
    if case .violation? = alone.first { return result + alone }
    if frame.opcode >= 8 {
      result += alone
      continue
    }
    if (frame.opcode == 0) != (message != nil) {
      let text =
        message == nil
        ? "a continuation frame without a message" : "a new message started before the last one ended"
      return result + [.violation(code: 1002, text)]
    }
    let whole = (message?.payload ?? []) + frame.payload
    let opcode = message?.opcode ?? frame.opcode
    if whole.count > limit {
      return result + [.violation(code: 1009, "a message is larger than \(limit) bytes")]
    }
    message = frame.isFinal ? nil : (opcode, whole)
    guard frame.isFinal else { continue }
    guard opcode == 1 else {
      result.append(.binary(whole))
      continue
    }
    guard String(validating: whole, as: UTF8.self) != nil else {
      return result + [.violation(code: 1007, "a text message is not valid UTF-8")]
    }
    result.append(.text(whole))
  }
  return result
}

private func check(_ step: Step, limit: Int) {
  switch step {
  case .text(let bytes), .binary(let bytes): if bytes.count > limit { fatalError("beyond the limit") }
  case .ping(let bytes): if bytes.count > 125 { fatalError("a ping of \(bytes.count) bytes") }
  case .close(let code, let reason):
    if code == 1005 ? !reason.isEmpty : !WebSocketAssembler.mayBeSent(code) {
      fatalError("a close frame with code \(code)")
    }
    if reason.utf8.count > 123 { fatalError("a reason of \(reason.utf8.count) bytes") }
  case .violation(let code, let text):
    if !WebSocketAssembler.mayBeSent(code) || text.isEmpty { fatalError("a violation with \(code)") }
  case .nothing, .pong: break
  }
}

/// The same messages in more frames. Frames that are violations by themselves stay as they are.
private func split(_ frames: [Frame], into pieces: Int) -> [Frame] {
  frames.flatMap { frame -> [Frame] in
    guard frame.opcode <= 2, !frame.isReserved else { return [frame] }
    return (0..<pieces).map { piece in
      let from = frame.payload.count * piece / pieces
      let to = frame.payload.count * (piece + 1) / pieces
      return Frame(
        isFinal: frame.isFinal && piece == pieces - 1, opcode: piece == 0 ? frame.opcode : 0,
        isMasked: frame.isMasked, payload: Array(frame.payload[from..<to]))
    }
  }
}
