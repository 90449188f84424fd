internal import MillraceDialog
internal import MillraceJSON

/// What the service reports besides the dialogue itself.
extension Invariant {
  static let reported = Invariant(
    "reported", "what the service reports is posted unchanged, in order, once"
  ) { record, expected in
    let reported = record.report.events
    var findings = expected.reports.sorted().compactMap { name in
      reported.contains { $0.name == name } ? nil : "the service did not report \(name)"
    }
    let all = Set(reported)
    let posted = record.events.filter { all.contains($0) }
    // A graph that is stopped need not post the rest.
    let isCut = record.entries.contains(.action(.stopped))
    guard posted != reported, !(isCut && reported.starts(with: posted)) else { return findings }
    for event in reported where !posted.contains(event) { findings.append("\(event.name) was not posted") }
    if findings.isEmpty {
      let names = posted.map(\.name).joined(separator: ", ")
      findings.append("posted were \(names) instead of \(reported.map(\.name).joined(separator: ", "))")
    }
    return findings
  }

  static let streams = Invariant(
    "streams", "the address of a reply's stream is posted before the reply begins"
  ) { record, expected in
    guard expected.traits.streamsReplies, record.count("replyStarted") > 0 else { return [] }
    let streams = record.report.streams
    guard !streams.isEmpty else { return ["no address of a stream was reported"] }
    let begins = record.events.indices.filter { record.events[$0].name == "replyStarted" }
    // A service has one stream for all replies, or one for each.
    for (address, begin) in zip(streams, begins) {
      // In JSON the address may be escaped, so that it is compared as JSON, too.
      let text = JSONValue.string(address).text.dropFirst().dropLast()
      guard record.events[..<begin].contains(where: { $0.json.text.contains(text) }) else {
        return ["a reply began before the address of its stream was posted"]
      }
    }
    return []
  }
}
