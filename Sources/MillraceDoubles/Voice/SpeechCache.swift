/// A cache of synthesised replies, so that a repeated text is spoken once. The oldest are discarded: a double may run for days, with a new
/// text every time.
struct SpeechCache {
  /// Capacity in bytes of audio: some hundred sentences of PCM.
  static let most = 64 << 20

  private var replies: [String: SpokenReply] = [:]
  private var order: [String] = []
  private(set) var bytes = 0

  func find(_ key: String) -> SpokenReply? { replies[key] }

  mutating func keep(_ reply: SpokenReply, _ key: String) {
    guard replies[key] == nil else { return }
    replies[key] = reply
    order.append(key)
    bytes += reply.bytes
    while bytes > Self.most, order.count > 1 {
      bytes -= replies.removeValue(forKey: order.removeFirst())?.bytes ?? 0
    }
  }
}
