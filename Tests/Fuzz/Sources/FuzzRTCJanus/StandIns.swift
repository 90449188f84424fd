import MillraceDialog

// In the place of types that depend on MillraceNet, with the members that the parsers need.

package struct JanusSettings: Sendable {
  var room: JanusID?
  var pin: String?
  var display: String?
  var user: String?
}

enum JanusPluginName {
  case textroom
}

enum JanusErrors {
  static func error(of plugin: JanusPluginName?, code: Int, reason: String) -> DialogError {
    RTCError.signalRefused.error("Janus refused: \(reason)", code: code == 0 ? nil : code)
  }
}
