internal import MillraceCore
internal import MillraceNet
internal import MillraceRoom
internal import MillraceService

extension RoomForm {
  /// Refuses outputs at which nobody ever is: there are as many participants at a time as slots. A room of another hub may mix; then all
  /// of them together are one sound, at `audio` and `audio1`, whatever the slots are.
  static func checkSlots(_ resolution: inout Resolution) {
    let (parameters, wanted) = (resolution.parameters, resolution.wanted)
    let isHub = parameters.has("listen")
    // Its slots mean nothing, and what it has no use for is refused already.
    guard !isHub || parameters.string("mode") != "mix" else { return }
    func isLinked(_ name: String) -> Bool { wanted[name]?.isEmpty == false }
    let slots = parameters.integer("slots")
    for (kind, least) in [("audio", isHub ? 0 : 1), ("video", 0)] {
      let reached = max(slots, least)
      let beyond = (1...tracks).first { $0 > reached && isLinked("\(kind)\($0)") }
      if let beyond {
        resolution.refuse(
          "slots", "\"\(kind)\(beyond)\" is linked, and \"slots\" is \(slots)",
          cure: "set \"slots\" to \(beyond) at least, or remove the link")
      } else if reached == 0, isLinked(kind) {
        resolution.refuse(
          "slots", "\"\(kind)\" is linked, and \"slots\" is 0",
          cure: "set \"slots\" to 1 at least, or remove the link")
      }
    }
  }

  /// The parameter that is the reason of a problem of a hub.
  static func cause(of problem: String, _ settings: RoomServerSettings) -> String {
    if settings.hub.problem == problem { return "hubKey" }
    var admission = settings.admission
    guard admission.problem?.text == problem else { return "host" }
    admission.origins = []
    return admission.problem?.text == problem ? "hosts" : "origins"
  }
}
