internal import MillraceDialog
internal import MillraceJSON
internal import MillraceService

/// What events take in memory while they wait, roughly: what grows with the cloud's packets is counted.
enum TuyaEventSize {
  /// Of every event.
  static let overhead = 256
  /// Of a JSON value, besides what it contains: it has a place on the heap.
  private static let node = 48
  /// Of a text or a list on the heap, besides its content.
  private static let heap = 32

  static func bytes(of event: ServiceEvent<TuyaNotice>) -> Int {
    switch event {
    case .audio(let bytes), .image(let bytes): overhead + bytes.count
    case .message(let notice): overhead + bytes(of: notice)
    case .invalidMessage(let text): overhead + text.utf8.count
    case .closed(let error): overhead + bytes(of: error)
    case .opened: overhead
    }
  }

  private static func bytes(of notice: TuyaNotice) -> Int {
    switch notice {
    // What it says shares its memory with the document.
    case .text(let text): bytes(of: text.raw)
    case .event(let event):
      event.id.utf8.count + (event.data.map(bytes) ?? 0) + (event.userData.map(bytes) ?? 0)
    case .unknown(let json): bytes(of: json)
    case .unreadableText(let text): text.utf8.count
    case .file(let path, let name, _): path.utf8.count + (name?.utf8.count ?? 0)
    case .failed(let error, _): bytes(of: error)
    case .connected(let id, _): id.utf8.count
    default: 0
    }
  }

  private static func bytes(of error: DialogError) -> Int {
    error.text.utf8.count + (error.detail?.utf8.count ?? 0)
  }

  private static func bytes(of json: JSONValue) -> Int {
    switch json {
    case .null, .bool: node
    case .number(let text), .string(let text): node + heap + text.utf8.count
    case .array(let items): items.reduce(node + heap) { $0 + bytes(of: $1) }
    case .object(let members):
      members.reduce(node + heap) { $0 + heap + $1.name.utf8.count + bytes(of: $1.value) }
    }
  }
}
