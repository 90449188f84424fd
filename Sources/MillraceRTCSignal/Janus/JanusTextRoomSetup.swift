internal import MillraceJSON

/// The plugin `textroom`: one session with data channels, offered by Janus. The room itself is joined over the channel: see `TextRoom`.
struct JanusTextRoomSetup: JanusPlugin {
  mutating func handle(_ input: JanusInput) -> [JanusAction] {
    switch input {
    case .attached(let session): return [.send(session, ["request": "setup"], nil, .join)]
    case .restart(let session, _): return [.send(session, ["request": "restart"], nil, .describe)]
    case .describe(let session, let sdp):
      return [.send(session, ["request": "ack"], JanusDescription(.answer, sdp), .describe)]
    case .event(let session, _, let description):
      guard let description, description.kind == .offer else { return [] }
      return [
        .report(
          .offer(
            SignalSessionID(session), sdp: description.sdp, SignalMedia(hasData: true), peer: nil))
      ]
    case .refused, .command, .ended, .hungUp: return []
    }
  }
}
