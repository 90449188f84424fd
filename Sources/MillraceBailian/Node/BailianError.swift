internal import MillraceDialog
internal import MillraceNet

/// Task ids: random UUIDs, RFC 9562 section 5.4.
enum TaskID {
  static func make() -> String {
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
    }
    return text
  }
}

extension DialogError {
  /// Classifies the end of a connection during a dialogue: `Stopped` and `task-finished` have been handled before.
  init(bailian end: WebSocketEnd) {
    var category = Category.network
    var reaction = Reaction.reconnect
    var cure = ""
    switch (end.problem?.kind, end.problem?.status) {
    case (.refused?, 401?), (.refused?, 403?):
      (category, reaction) = (.auth, .refuse)
      cure = "; check \"key\", which the example graphs take from DASHSCOPE_API_KEY, and \"workspace\""
    case (.refused?, 429?): category = .quota
    case (.refused?, let status?) where (400..<500).contains(status):
      (category, reaction) = (.request, .refuse)
    case (.tls?, _), (.address?, _): reaction = .refuse
    case (.cancelled?, _): reaction = .ended
    default: break
    }
    self.init(
      vendor: "bailian", code: end.problem?.status ?? end.code, name: end.problem?.kind.rawValue,
      category: category, reaction: reaction, text: end.description + cure)
  }
}
