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
    "streams",
    "the address of a reply's stream is there before the reply begins, and the end of a stream is reported"
  ) { record, expected in
    guard expected.traits.streamsReplies else { return [] }
    return (record.count("replyStarted") > 0 ? addresses(record) : []) + ends(record, expected)
  }

  private static func addresses(_ record: ServiceRecord) -> [String] {
    let streams = record.report.streams
    guard !streams.isEmpty else { return ["no address of a stream was reported"] }
    let begins = record.entries.indices.filter {
      if case .event(let event) = record.entries[$0] { event.name == "replyStarted" } else { false }
    }
    // A service has one stream for all replies, or one for each.
    for (address, begin) in zip(streams, begins) {
      // In JSON the address may be escaped, so that it is compared as JSON, too.
      let text = JSONValue.string(address).text.dropFirst().dropLast()
      let isKnown = record.entries[..<begin].contains { entry in
        switch entry {
        case .stream(let known): known == address
        case .event(let event): event.json.text.contains(text)
        default: false
        }
      }
      guard isKnown else { return ["a reply began before the address of its stream was posted"] }
    }
    return []
  }

  /// At an output of addresses, the last is the empty one; a graph that is stopped need not say so.
  private static func ends(_ record: ServiceRecord, _ expected: CaseExpectation) -> [String] {
    let addresses = record.entries.compactMap { entry -> String? in
      if case .stream(let address) = entry { address } else { nil }
    }
    guard expected.traits.stream != nil, let last = addresses.last, !last.isEmpty,
      !record.entries.contains(.action(.stopped)), record.ending.failure == nil
    else { return [] }
    return ["the end of the stream was not reported"]
  }
}
