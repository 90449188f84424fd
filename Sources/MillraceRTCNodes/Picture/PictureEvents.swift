internal import MillraceCore
internal import MillraceDialog

/// The events that a node posts about encoded pictures, from its own thread. Nothing allocates.
enum PictureEvents {
  /// The indices in the contract of every node with events of the dialogue vocabulary.
  private static let error = DialogEvent.contracts.firstIndex { $0.name == "error" } ?? 0
  private static let extra = DialogEvent.contracts.firstIndex { $0.name == "extra" } ?? 0

  /// Asks the node that encodes the pictures of this node for a key frame: `extra` with the name `keyframeRequested`.
  static func requestKeyFrame(_ ports: inout Ports) {
    ports.post(extra) { $0.field("name", "keyframeRequested") }
  }

  /// Reports pictures that were refused: what is wrong and the cure, and how many bytes the picture has.
  static func refuse(_ name: StaticString, _ text: StaticString, bytes: Int, _ ports: inout Ports) {
    ports.post(error) { event in
      event.field("vendor", "rtc")
      event.field("name", name)
      event.field("category", "request")
      event.field("reaction", "continue")
      event.field("scope", "connection")
      event.field("bytes", bytes)
      event.field("text", text)
    }
  }
}

extension PictureCodec {
  /// The codec of a link; nil for a format that is none of encoded pictures.
  init?(_ kind: Format.Kind) {
    switch kind {
    case .h264: self = .h264
    case .vp8: self = .vp8
    default: return nil
    }
  }

  /// The format of a link that carries it.
  var kind: Format.Kind { self == .h264 ? .h264 : .vp8 }
}
