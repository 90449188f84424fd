internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The results of a command, by the index of the target.
struct ControlResults: Sendable {
  var reports: [Int: RunReport] = [:]
  /// Values of a parameter; an inner nil means that the parameter has no value.
  var values: [Int: ParameterValue?] = [:]

  mutating func merge(_ other: ControlResults) {
    reports.merge(other.reports) { _, new in new }
    values.merge(other.values) { _, new in new }
  }
}

/// The answer to one line of control input.
struct ControlAnswer: Sendable {
  /// Line number, from 1.
  let line: Int
  /// The sender's identifier for the command.
  let id: JSONNode?

  /// - Parameters:
  ///   - time: graph time at which the command was executed.
  ///   - results: what the command returned.
  func succeeded(at time: Nanoseconds, _ results: ControlResults = ControlResults()) -> String {
    write { json in
      json.member("ok", true)
      json.member("time", Double(time) / 1e9)
      let values = results.values.sorted { $0.key < $1.key }.map(\.value)
      if values.count == 1 {
        json.key("value")
        json.value(ofAny: values[0])
      } else if !values.isEmpty {
        json.array("values") { json in for value in values { json.value(ofAny: value) } }
      }
      let reports = results.reports.sorted { $0.key < $1.key }.map(\.value)
      if !reports.isEmpty { json.object("report") { RunReportFile.write(reports, to: &$0) } }
    }
  }

  func failed(_ error: ControlError) -> String {
    write { json in
      json.member("ok", false)
      if let column = error.column { json.member("column", column) }
      json.member("error", error.text)
    }
  }

  private func write(_ members: (inout JSONWriter) -> Void) -> String {
    var json = JSONWriter()
    json.object { json in
      json.member("line", line)
      if let id { json.member("id", id) }
      members(&json)
    }
    return json.text
  }
}

extension JSONWriter {
  /// Writes the value of a parameter, or `null` when it has none.
  fileprivate mutating func value(ofAny value: ParameterValue?) {
    if let value { self.value(of: value) } else { null() }
  }
}
