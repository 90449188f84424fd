@testable import MillraceRTCWire

/// The packets of a datagram in short words, and what was refused.
func rtcpWords(_ bytes: [UInt8]) -> [String] {
  var reader = RTCPReader(bytes.span)
  var words: [String] = []
  while true {
    do throws(RTCPProblem) {
      guard let packet = try reader.next() else { return words }
      words.append(word(packet))
    } catch { words.append("\(error)") }
  }
}

/// The first packet, if it is transport-wide feedback: for each status its sequence number and its arrival in units of 250 µs.
func rtcpStatuses(_ bytes: [UInt8]) -> [RTCPTransportFeedback.Status] {
  var reader = RTCPReader(bytes.span)
  guard let packet = try? reader.next(), case .transportFeedback(let feedback) = packet else { return [] }
  var (statuses, all) = (feedback.statuses, [RTCPTransportFeedback.Status]())
  while let status = statuses.next() { all.append(status) }
  return all
}

private func word(_ packet: RTCPPacket) -> String {
  switch packet {
  case .senderReport(let report): return "SR \(report.info.ssrc)\(word(report.blocks))"
  case .receiverReport(let report): return "RR \(report.ssrc)\(word(report.blocks))"
  case .sourceDescription(let description): return "SDES" + word(description)
  case .goodbye(let goodbye):
    return "BYE" + (0..<goodbye.count).map { " \(goodbye[$0])" }.joined()
      + (goodbye.reasonText.map { " (\($0))" } ?? "")
  case .nack(let nack):
    var (sequences, text) = (nack.sequences, "NACK \(nack.sender) \(nack.media):")
    while let sequence = sequences.next() { text += " \(sequence)" }
    return text
  case .transportFeedback(let feedback): return word(feedback)
  case .pictureLoss(let loss): return "PLI \(loss.sender) \(loss.media)"
  case .fullIntraRequest(let request):
    return "FIR \(request.sender):"
      + (0..<request.count).map { " \(request[$0].media)/\(request[$0].number)" }.joined()
  case .bitrateEstimate(let estimate):
    return "REMB \(estimate.sender) \(estimate.bitrate):"
      + (0..<estimate.count).map { " \(estimate[$0])" }.joined()
  case .other(let other): return "other \(other.type.rawValue)/\(other.format) \(other.range)"
  }
}

private func word(_ blocks: RTCPReportBlocks) -> String {
  (0..<blocks.count).map { " [\(blocks[$0].ssrc) \(blocks[$0].fractionLost) \(blocks[$0].lost)]" }.joined()
}

private func word(_ description: RTCPSourceDescription) -> String {
  var (items, text) = (description.items, "")
  while let item = items.next() { text += " \(item.ssrc)/\(item.kind)=" + String(rtcp: item.text) }
  return text
}

/// Statuses as the difference to the packet before in units of 250 µs, `-` where the packet did not arrive.
private func word(_ feedback: RTCPTransportFeedback) -> String {
  var (statuses, text, last) = (
    feedback.statuses, "TWCC \(feedback.base) \(feedback.reference) \(feedback.number):", 0 as Int64
  )
  while let status = statuses.next() {
    guard let arrival = status.arrival else {
      text += " -"
      continue
    }
    text += " \((arrival - last) / RTCPTransportFeedback.deltaUnit)"
    last = arrival
  }
  return text
}
