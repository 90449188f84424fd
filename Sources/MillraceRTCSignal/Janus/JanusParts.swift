internal import MillraceDialog
internal import MillraceJSON
internal import MillraceRTCWire

/// Parts that several plugins share.
enum JanusParts {
  /// The request to remove a participant.
  static func kick(_ id: JanusID, _ settings: JanusSettings) -> JSONValue {
    .object([
      "request": "kick", "room": settings.room?.json, "secret": settings.secret.map { .string($0) },
      "id": id.json,
    ])
  }

  /// The refusal of a command that names a participant who is not there.
  static func noPeer(_ name: String) -> DialogError {
    RTCError.command.error(
      "there is no participant \"\(JanusErrors.cut(name))\" in the room", scope: .command)
  }

  /// The end of everything because of the room.
  static func removed(_ reason: KickReason, _ text: String) -> [JanusAction] {
    [.report(.event(.kicked(reason, text: text))), .fail(RTCError.ended.error(text))]
  }

  static func events(_ events: [DialogEvent]) -> [JanusAction] { events.map { .report(.event($0)) } }

  /// A message of a plugin without a meaning here, as an event.
  static func extra(_ plugin: JanusPluginName, _ data: JSONValue) -> JanusAction {
    .report(.event(.extra(name: plugin.rawValue, payload: data)))
  }

  /// What Janus offers, seen from this side. An offer that cannot be read is refused by the caller, who answers it.
  static func media(offered sdp: String) -> SignalMedia {
    var media = SignalMedia()
    guard let description = try? SessionDescription(parsing: sdp) else { return media }
    for medium in description.media where !medium.isRejected {
      let direction = description.direction(of: medium).reversed
      switch medium.kind {
      case .audio: media.audio = either(media.audio, direction)
      case .video: media.video = either(media.video, direction)
      case .application: media.hasData = true
      case .other: break
      }
    }
    return media
  }

  /// The id of the first medium of a description: that of the transport of all, which are bundled.
  static func firstMid(_ sdp: String) -> String {
    guard let description = try? SessionDescription(parsing: sdp) else { return "0" }
    return description.media.first?.mid ?? "0"
  }

  private static func either(_ one: MediaDirection, _ other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: one.sends || other.sends, receives: one.receives || other.receives)
  }
}
