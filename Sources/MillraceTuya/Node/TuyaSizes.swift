internal import MillraceCore
internal import MillraceJSON
internal import MillraceService

/// Checks that what the parameters say fits the packets that will carry it: see `TuyaFrameRoom`.
enum TuyaSizes {
  static func check(_ values: ParameterValues, _ rules: TuyaRules) throws(NodeProblem) {
    let room = rules.room
    func bytes(_ name: String) -> Int { values.given(name)?.utf8.count ?? 0 }
    for names in [["client"], ["user", "password"]] {
      try check("logs in", names.map { ($0, bytes($0)) }, names.reduce(0) { $0 + bytes($1) }, room.event)
    }
    if let id = values.given("session"), id.utf8.count > TuyaOrder.mostIDBytes {
      throw NodeProblem(
        "\"session\" has \(id.utf8.count) bytes, and may have \(TuyaOrder.mostIDBytes)", parameter: "session",
        cure: "shorten it, or leave it out")
    }
    let wishes = values.strings("wishes").reduce(0) { $0 + $1.utf8.count }
    try check(
      "creates the session",
      [("token", room.token), ("sessionAttributes", bytes("sessionAttributes")), ("wishes", wishes)],
      room.bytes(of: rules.creationData) + room.token, room.creation)
    try check(
      "begins an event", ["chatAttributes", "eventAttributes"].map { ($0, bytes($0)) },
      room.bytes(of: rules.startData(hasVoice: true)), room.event)
  }

  /// Refuses the largest of the parameters where their packet has no room for them.
  private static func check(
    _ purpose: String, _ parameters: [(name: String, bytes: Int)], _ count: Int, _ most: Int
  ) throws(NodeProblem) {
    guard count > most, let largest = parameters.max(by: { $0.bytes < $1.bytes }) else { return }
    throw NodeProblem(
      "the packet that \(purpose) would have \(count) bytes of texts and user data, and \(most) fit",
      parameter: largest.name, cure: "raise \"maxFragment\", or shorten \"\(largest.name)\"")
  }
}
