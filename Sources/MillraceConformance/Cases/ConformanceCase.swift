internal import MillraceDialog

/// One thing that is done to a service node.
struct ConformanceCase: Sendable {
  var name: String
  /// What has to come of it, in words, beside all invariants.
  var text: String
  var script = ServiceScript()
  var expect: @Sendable (inout CaseExpectation) -> Void = { _ in }
  /// What happens, from the start to the graph's end.
  var play: @Sendable (Rehearsal) async throws -> Void

  init(
    _ name: String, _ text: String, script: (inout ServiceScript) -> Void = { _ in },
    expect: @escaping @Sendable (inout CaseExpectation) -> Void = { _ in },
    play: @escaping @Sendable (Rehearsal) async throws -> Void
  ) {
    self.name = name
    self.text = text
    script(&self.script)
    self.expect = expect
    self.play = play
  }

  /// Why it does not fit a service; nil: it does.
  func misfit(_ traits: ServiceTraits) -> String? {
    if let fault = script.fault, traits.faults[fault.kind]?.contains(fault.place) != true {
      return "the double does not do this"
    }
    if script.refusal != nil && !traits.refuses { return "the double refuses nobody" }
    if needsVoice && !(traits.hearsVoice && traits.audio != nil) { return "no voice is heard" }
    if needsPlayback && !traits.takesReports { return "it is not told what is heard" }
    if needsInput && traits.audio == nil { return "it takes no sound" }
    return nil
  }
  var needsVoice = false
  var needsPlayback = false
  var needsInput = false

  /// All of them, in the order they are run.
  static let all = dialogues + openings + faults + interruptions + ends + [memory]
}
