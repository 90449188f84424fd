import MillraceRTCWire

private let identifiers = RTPExtensionIdentifiers(
  audioLevel: 1, mid: 2, absoluteSendTime: 3, transportSequence: 4)

/// Reads a packet of RTP with everything that its header has, writes it again, and sends it once more as a retransmission.
func checkRTP(_ bytes: [UInt8]) {
  let kind = RTPDemultiplexer.kind(of: bytes.span)
  let header: RTPHeader
  do throws(RTPProblem) { header = try RTPHeader(parsing: bytes.span) } catch {
    return checkText(error.description)
  }
  if kind != .rtp && kind != .rtcp { fatalError("RTP taken for \(kind)") }
  checkParts(of: header, bytes)
  checkExtensions(of: header, bytes)
  checkWriting(header, bytes)
  checkRepetition(header, bytes)
}

private func checkParts(of header: RTPHeader, _ bytes: [UInt8]) {
  let (elements, payload) = (header.extensionRange, header.payload)
  if payload.lowerBound < RTPHeader.fixedSize || payload.upperBound + header.padding != bytes.count {
    fatalError("a payload at \(payload) and \(header.padding) of padding in \(bytes.count) bytes")
  }
  if elements.upperBound > payload.lowerBound {
    fatalError("extensions at \(elements), payload at \(payload)")
  }
  for index in -1...header.contributorCount {
    let isThere = header.contributor(index, in: bytes.span) != nil
    if isThere != (0..<header.contributorCount).contains(index) { fatalError("contributor \(index)") }
  }
}

private func checkExtensions(of header: RTPHeader, _ bytes: [UInt8]) {
  let elements = header.extensionRange
  for identifier in UInt8.min...UInt8.max {
    guard let range = header.range(ofExtension: identifier, in: bytes.span) else { continue }
    if range.lowerBound < elements.lowerBound || range.upperBound > elements.upperBound {
      fatalError("extension \(identifier) at \(range), outside of \(elements)")
    }
    _ = header.audioLevel(identifier, in: bytes.span)
    _ = header.mid(identifier, in: bytes.span)?.description
    _ = header.absoluteSendTime(identifier, in: bytes.span)
    _ = header.transportSequence(identifier, in: bytes.span)
  }
  var copy = bytes
  var span = copy.mutableSpan
  if header.replaceTransportSequence(4, by: 7, in: &span) {
    if header.transportSequence(4, in: span.span) != 7 { fatalError("the number was not replaced") }
  }
}

private func checkWriting(_ header: RTPHeader, _ bytes: [UInt8]) {
  let extensions = RTPExtensions(header, identifiers, in: bytes.span)
  let plain = RTPHeader(
    payloadType: header.payloadType, sequence: header.sequence, timestamp: header.timestamp,
    ssrc: header.ssrc, marker: header.marker)
  var room = [UInt8](repeating: 0xEE, count: 64)
  var target = room.mutableSpan
  do throws(RTPProblem) {
    let size = try plain.write(extensions, identifiers: identifiers, into: &target)
    let written = target.span.extracting(0..<size)
    let again = try RTPHeader(parsing: written)
    if again.payloadType != header.payloadType || again.sequence != header.sequence
      || again.timestamp != header.timestamp || again.ssrc != header.ssrc || again.marker != header.marker
      || !again.payload.isEmpty
    {
      fatalError("\(header) reads back as \(again)")
    }
    if RTPExtensions(again, identifiers, in: written) != extensions {
      fatalError("other extensions than \(extensions)")
    }
  } catch {
    fatalError("a header that was read cannot be written: \(error)")
  }
}

/// Wrapped and unwrapped, a packet is the same but for its padding.
private func checkRepetition(_ header: RTPHeader, _ bytes: [UInt8]) {
  var expected = Array(bytes[..<header.payload.upperBound])
  expected[0] &= ~0x20
  var stream = RTXStream(ssrc: 99, payloadType: 97, sequence: 5)
  var (repeated, original) = (
    [UInt8](repeating: 0, count: bytes.count + 2), [UInt8](repeating: 0, count: bytes.count + 2)
  )
  do throws(RTPProblem) {
    var first = repeated.mutableSpan
    let size = try stream.wrap(bytes.span, into: &first)
    var second = original.mutableSpan
    let count = try RTXStream.unwrap(
      first.span.extracting(0..<size), ssrc: header.ssrc, payloadType: header.payloadType, into: &second)
    let unwrapped = (0..<count).map { second[$0] }
    if unwrapped != expected { fatalError("a retransmission of \(expected) contains \(unwrapped)") }
  } catch {
    fatalError("a packet cannot be repeated: \(error)")
  }
}
