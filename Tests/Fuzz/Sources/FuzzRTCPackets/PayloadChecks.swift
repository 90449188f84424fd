@testable import MillraceRTCWire

/// Reads a payload as each of the formats, and writes what can be written.
func checkPayload(_ bytes: [UInt8]) {
  checkOpus(bytes)
  checkVP8(bytes)
  checkTelephoneEvent(bytes)
  do throws(PayloadProblem) {
    if let size = try VP8FrameHeader(parsing: bytes.span).size {
      let range = 1...16_383
      if !range.contains(size.width) || !range.contains(size.height) { fatalError("a picture of \(size)") }
    }
  } catch { checkText(error.description) }
  _ = H264Payload.canBeginAccessUnit(bytes.span, hasParameterSets: true)
}

private func checkOpus(_ bytes: [UInt8]) {
  do throws(PayloadProblem) {
    let payload = try OpusPayload(parsing: bytes.span)
    if !(1...48).contains(payload.frames) || !(1...2).contains(payload.channels)
      || !(120...OpusPayload.maximumSamples).contains(payload.samples)
    {
      fatalError("no packet of Opus: \(payload)")
    }
  } catch { checkText(error.description) }
}

private func checkVP8(_ bytes: [UInt8]) {
  let head: (descriptor: VP8Descriptor, byteCount: Int)
  do throws(PayloadProblem) { head = try VP8Descriptor.parse(bytes.span) } catch {
    return checkText(error.description)
  }
  if !(1...6).contains(head.byteCount) { fatalError("a descriptor of \(head.byteCount) bytes") }
  var room = [UInt8](repeating: 0xEE, count: 6)
  var target = room.mutableSpan
  do throws(PayloadProblem) {
    let count = try head.descriptor.write(into: &target)
    let again = try VP8Descriptor.parse(target.span.extracting(0..<count))
    if again.descriptor != head.descriptor || again.byteCount != count {
      fatalError("\(head.descriptor) reads back as \(again.descriptor)")
    }
  } catch {
    fatalError("a descriptor that was read cannot be written: \(error)")
  }
}

private func checkTelephoneEvent(_ bytes: [UInt8]) {
  let event: TelephoneEvent
  do throws(PayloadProblem) { event = try TelephoneEvent(parsing: bytes.span) } catch {
    return checkText(error.description)
  }
  var room = [UInt8](repeating: 0xEE, count: TelephoneEvent.byteCount)
  var target = room.mutableSpan
  do throws(PayloadProblem) {
    try event.write(into: &target)
    if try TelephoneEvent(parsing: target.span) != event { fatalError("\(event) reads back differently") }
  } catch {
    fatalError("an event that was read cannot be written: \(error)")
  }
  if let key = event.key, TelephoneEvent.code(of: key) != event.event { fatalError("the code of \(key)") }
}

// MARK: - Packetizers

/// A payload of a packetizer.
private struct Part {
  var payload: [UInt8]
  var marker: Bool
}

/// Cuts the bytes into payloads, as an access unit and as a frame of VP8, and puts them together again.
func checkPacketizers(_ bytes: [UInt8], limit: Int) {
  checkH264(bytes, limit)
  checkVP8Frame(bytes, limit)
}

private func checkH264(_ bytes: [UInt8], _ limit: Int) {
  var reader = AnnexBReader(bytes.span)
  var (expected, end) = ([UInt8](), 0)
  while let unit = reader.next() {
    if unit.isEmpty || unit.lowerBound < end || unit.upperBound > bytes.count {
      fatalError("a unit at \(unit) after \(end)")
    }
    end = unit.upperBound
    expected += [0, 0, 0, 1]
    expected += bytes[unit]
  }
  guard let parts = h264Parts(bytes, limit) else { return }
  check(parts, limit)
  var depacketizer = H264Depacketizer(maximumBytes: max(1, expected.count))
  var frames: [[UInt8]] = []
  for (index, part) in parts.enumerated() {
    do throws(PayloadProblem) {
      try depacketizer.add(
        part.payload.span, sequence: Int64(index), timestamp: 0, marker: part.marker
      ) { frames.append(copy($0.bytes)) }
    } catch {
      fatalError("a payload of a packetizer is refused: \(error)")
    }
  }
  if frames != [expected] { fatalError("\(frames.count) access units, other than the one that was cut") }
}

private func h264Parts(_ bytes: [UInt8], _ limit: Int) -> [Part]? {
  var parts: [Part] = []
  var room = [UInt8](repeating: 0xEE, count: limit)
  var target = room.mutableSpan
  do throws(PayloadProblem) {
    var packetizer = try H264Packetizer(annexB: bytes.span, maximumBytes: limit)
    while let part = try packetizer.next(into: &target) {
      parts.append(Part(payload: (0..<part.byteCount).map { target[$0] }, marker: part.marker))
    }
  } catch {
    checkText(error.description)
    return nil
  }
  return parts
}

private func checkVP8Frame(_ bytes: [UInt8], _ limit: Int) {
  guard !bytes.isEmpty else { return }
  var parts: [Part] = []
  var room = [UInt8](repeating: 0xEE, count: limit)
  var target = room.mutableSpan
  do throws(PayloadProblem) {
    var packetizer = VP8Packetizer(
      bytes.span, descriptor: VP8Descriptor(pictureID: 7), maximumBytes: limit)
    while let part = try packetizer.next(into: &target) {
      parts.append(Part(payload: (0..<part.byteCount).map { target[$0] }, marker: part.marker))
    }
  } catch {
    fatalError("a frame cannot be cut: \(error)")
  }
  check(parts, limit)
  var depacketizer = VP8Depacketizer(maximumBytes: bytes.count)
  var frames: [[UInt8]] = []
  for (index, part) in parts.enumerated() {
    do throws(PayloadProblem) {
      try depacketizer.add(
        part.payload.span, sequence: Int64(index), timestamp: 0, marker: part.marker
      ) { frame, _ in frames.append(copy(frame.bytes)) }
    } catch {
      fatalError("a payload of a packetizer is refused: \(error)")
    }
  }
  if frames != [bytes] { fatalError("\(frames.count) frames, other than the one that was cut") }
}

private func check(_ parts: [Part], _ limit: Int) {
  for (index, part) in parts.enumerated() {
    if part.payload.isEmpty || part.payload.count > limit || part.marker != (index == parts.count - 1) {
      fatalError("payload \(index) of \(parts.count) has \(part.payload.count) bytes of \(limit)")
    }
  }
}

private func copy(_ bytes: Span<UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }
