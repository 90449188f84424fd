internal import MillraceJSON
internal import MillraceRTCWire

/// The plugin `streaming`: one session that plays a mountpoint, offered by Janus.
struct JanusStreaming: JanusPlugin {
  private let settings: JanusSettings

  init(_ settings: JanusSettings) { self.settings = settings }

  var leaveRequest: JSONValue? { ["request": "stop"] }

  mutating func handle(_ input: JanusInput) -> [JanusAction] {
    switch input {
    case .attached: return [watch(restart: nil)]
    case .restart: return [watch(restart: true)]
    case .describe(let session, let sdp):
      return [.send(session, ["request": "start"], JanusDescription(.answer, sdp), .describe)]
    case .event(let session, let data, let description): return event(session, data, description)
    case .refused, .command, .ended, .hungUp: return []
    }
  }

  private func watch(restart: Bool?) -> JanusAction {
    let media = settings.media
    // Without these Janus offers all that the mountpoint has.
    let body = JSONValue.object([
      "request": "watch", "id": settings.stream?.json, "pin": settings.pin.map { .string($0) },
      "offer_audio": media.audio.receives ? nil : false, "offer_video": media.video.receives ? nil : false,
      "restart": restart.map { .bool($0) },
    ])
    return .send(0, body, nil, restart == nil ? .join : .describe)
  }

  private func event(
    _ session: Int, _ data: JSONValue, _ description: JanusDescription?
  ) -> [JanusAction] {
    var actions: [JanusAction] = []
    if let description, description.kind == .offer {
      let media = JanusParts.media(offered: description.sdp)
      actions.append(.report(.offer(SignalSessionID(session), sdp: description.sdp, media, peer: nil)))
    }
    switch data["result"]?["status"]?.string {
    case "stopping", "stopped": actions.append(.report(.sessionEnded(SignalSessionID(session))))
    case "preparing", "starting", "started", "updating": break
    default: actions.append(JanusParts.extra(.streaming, data))
    }
    return actions
  }
}
