import MillraceRTCWire

/// Statuses of transport-wide feedback that are written again, in one input: packets of 40 bytes may have 65,535.
private let mostStatuses = 20_000

/// Reads the packets of a datagram of RTCP with everything that they have, and writes each again.
func checkRTCP(_ bytes: [UInt8]) {
  var statuses = mostStatuses
  for content in contents(bytes) {
    if case .feedback(_, _, _, _, let arrivals) = content {
      statuses -= arrivals.count
      if statuses < 0 { continue }
    }
    guard let written = content.bytes else { continue }
    if contents(written) != [content] { fatalError("\(content) reads back differently") }
  }
  joinFeedback(bytes)
}

private func contents(_ bytes: [UInt8]) -> [RTCPContent] {
  var reader = RTCPReader(bytes.span)
  var list: [RTCPContent] = []
  var isOver = false
  // Each call reads a header, or ends.
  for _ in 0...(bytes.count / 4 + 1) {
    do throws(RTCPProblem) {
      guard let packet = try reader.next() else { return list }
      if isOver { fatalError("a packet after the end") }
      list.append(RTCPContent(packet))
    } catch {
      checkText(error.description)
      isOver = !error.canReadNext
    }
  }
  fatalError("it does not terminate")
}

/// Joins the feedback with packets that were sent: each has a result twice at most, lost first.
private func joinFeedback(_ bytes: [UInt8]) {
  var history = TransportFeedbackHistory(capacity: 256)
  for number in UInt16(0)..<256 { history.note(sequence: number, bytes: 100, at: Int64(number) * 1_000_000) }
  var results = 0
  var reader = RTCPReader(bytes.span)
  for _ in 0...(bytes.count / 4 + 1) {
    do throws(RTCPProblem) {
      guard let packet = try reader.next() else { break }
      if case .transportFeedback(let feedback) = packet { history.join(feedback) { _ in results += 1 } }
    } catch { continue }
  }
  if results > 512 || !(0...25_600).contains(history.bytesInFlight) {
    fatalError("\(results) results, \(history.bytesInFlight) bytes in flight")
  }
}
