internal import MillraceCore

/// Whether any of the utterances that came had sound in it: a node that was given bytes and found none in all of them fails at the
/// end of its input, since a run that ends well is taken for one that played.
struct SoundTally {
  private var hasSound = false
  private var silentBytes: Int64 = 0

  /// Sound was found.
  mutating func noteSound() { hasSound = true }

  /// An utterance of so many bytes was over, and had none.
  mutating func noteSilence(bytes: Int64) { silentBytes &+= bytes }

  /// Throws when bytes came and none of them was sound. For the end of the input.
  func check() throws(NodeFault) {
    if !hasSound && silentBytes > 0 { throw NodeFault(.badInput, detail: silentBytes) }
  }

  /// The fault in words; `kind` is what was to come.
  static func words(_ fault: NodeFault, kind: StaticString) -> String? {
    guard fault.reason == .badInput else { return nil }
    return "none of the \(fault.detail) bytes that came is \(kind), so there was nothing to play; "
      + "look at what the node before it sends: an error message, or another format"
  }
}
