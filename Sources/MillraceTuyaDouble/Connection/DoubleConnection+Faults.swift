internal import MillraceConformance
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON

extension DoubleConnection {
  /// Performs a fault. True when what was going on does not continue.
  /// - Parameters:
  ///   - fault: what to do.
  ///   - session: the session of the turn; nil: there is none yet.
  func misbehave(_ fault: ServiceFault, _ session: DoubleSession?) -> Bool {
    double.note("# \(fault.kind.rawValue)")
    switch fault.kind {
    case .hold: return true
    case .stall: stall()
    case .drop: drop()
    case .expire:
      double.expireKeys()
      drop()
    case .fail: close(fault.code ?? Code.serverError)
    case .kick: kick(fault, session)
    case .oversized: sendOversized()
    case .error: session?.fail()
    case .malformed:
      session?.send(
        text: Array(#"{"bizType":"NLG","data":{"content":""#.utf8) + Array(ServiceFault.userText.utf8))
      return false
    case .unknown:
      session?.sendUnknown()
      return false
    case .repeated, .outOfOrder: return false
    }
    return true
  }

  /// Ends the dialogue for good: because the same client is connected elsewhere, or without a reason.
  private func kick(_ fault: ServiceFault, _ session: DoubleSession?) {
    guard fault.reason == .replaced else {
      if let session { return close(session, Code.ok) }
      return close(Code.ok)
    }
    double.noteReported(.kicked(.replaced, text: Self.replacedText))
    close(Code.reused)
  }

  /// The cloud sends a code; this is what it means.
  private static let replacedText =
    "the connection was closed by the cloud with status 602: the same identity is connected elsewhere"
}
