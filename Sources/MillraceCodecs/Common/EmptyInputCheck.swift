internal import MillraceCore

/// Checks that some utterance contained audio. A node that received bytes but found no audio in any of them fails at the end of its input:
/// otherwise the run would look as if it had played something.
struct EmptyInputCheck {
  private var hasSound = false
  private var silentBytes: Int64 = 0

  /// Records that audio was found.
  mutating func noteAudio() { hasSound = true }

  /// Records an utterance of this many bytes without audio.
  mutating func noteSilence(bytes: Int64) { silentBytes &+= bytes }

  /// Throws if bytes arrived but none of them was audio. Call it at the end of the input.
  func check() throws(NodeFault) {
    if !hasSound && silentBytes > 0 { throw NodeFault(.badInput, detail: silentBytes) }
  }

  /// The message for the fault; `kind` is what was expected.
  static func message(for fault: NodeFault, kind: StaticString) -> String? {
    guard fault.reason == .badInput else { return nil }
    return "none of the \(fault.detail) bytes received is \(kind); "
      + "check what the previous node sends: it may be an error message, or another format"
  }
}
