internal import MillraceDialog

/// A case of the conformance suite.
struct ConformanceCase: Sendable {
  var name: String
  /// What is expected in addition to the invariants.
  var text: String
  var script = ServiceScript()
  var expect: @Sendable (inout CaseExpectation) -> Void = { _ in }
  /// The actions, from the start to the end of the graph.
  var play: @Sendable (CaseRun) async throws -> Void

  init(
    _ name: String, _ text: String, script: (inout ServiceScript) -> Void = { _ in },
    expect: @escaping @Sendable (inout CaseExpectation) -> Void = { _ in },
    play: @escaping @Sendable (CaseRun) async throws -> Void
  ) {
    self.name = name
    self.text = text
    script(&self.script)
    self.expect = expect
    self.play = play
  }

  /// Why the case does not apply to a service, or nil.
  func reasonToSkip(_ traits: ServiceTraits) -> String? {
    if let fault = script.fault, traits.faults[fault.kind]?.contains(fault.place) != true {
      return "the double does not support this fault"
    }
    if script.refusal != nil && !traits.refuses { return "the double does not refuse connections" }
    if needsVoice && !(traits.detectsSpeech && traits.audio != nil) {
      return "the service does not detect speech"
    }
    if needsPlayback && !traits.takesReports { return "the node takes no playback reports" }
    if needsInput && traits.audio == nil { return "the node has no audio input" }
    return reasonToSkipTraits(traits)
  }
  var needsVoice = false
  var needsPlayback = false
  var needsInput = false
  /// Why the case does not apply to a service with these traits, or nil.
  var reasonToSkipTraits: @Sendable (ServiceTraits) -> String? = { _ in nil }

  /// All cases, in the order they run.
  static let all = dialogues + openings + faults + interruptions + ends + traits + [memory]
}
