/// Which end of a graph a node type gives to the program.
package enum AppEnd: Sendable, Hashable {
  /// The program sends: the engine creates a `SourceChannel` for the node.
  case source
  /// The program receives: the engine creates a `SinkChannel` for the node.
  case sink
}

/// The settings of a source, from its node's parameters.
package struct SourceSettings: Sendable {
  /// Most packets in the queue.
  package var capacity: Int
  /// True: a full queue drops what is sent; false: a send waits for room.
  package var drops = false
  /// True: what is sent belongs to the bot's current reply.
  package var isReply = false
  /// True: a virtual clock stands still while the queue is empty.
  package var holdsClock = true

  /// Settings for a queue of `capacity` packets. By default a send waits for room, and packets belong to no reply.
  package init(capacity: Int) { self.capacity = capacity }

  /// Settings from the checked parameters of an `app.source`, for a format.
  package init(_ parameters: ParameterValues, _ format: Format) {
    capacity =
      parameters.has("capacity") ? parameters.integer("capacity") : AppDefaults.capacity(of: format.kind)
    drops = parameters.string("whenFull") == "dropNewest"
    isReply = parameters.bool("replies")
    holdsClock = parameters.string("pacing") == Pacing.waits.rawValue
  }
}

/// Defaults of parameters that depend on the format.
package enum AppDefaults {
  /// Capacity of a queue in packets: more than half a second of audio in packets of 20 ms, or a few pictures.
  package static func capacity(of kind: Format.Kind) -> Int {
    switch kind {
    case .jpeg, .png, .video: 4
    default: 32
    }
  }

  /// Size in bytes of the largest packet of a format without a fixed packet size.
  ///
  /// 7,662: the longest Opus packet, 48 frames of 2.5 ms (RFC 6716, section 3.2.5). 8,191: the longest ADTS frame (ISO/IEC 13818-7,
  /// 6.2). Pictures: more than the 180,000 bytes that voice services accept. A picture of a stream: the most that the nodes of WebRTC send.
  package static func maxBytes(of kind: Format.Kind) -> Int {
    switch kind {
    case .opus: 7_662
    case .aac: 8_191
    case .mp3, .ogg: 8_192
    case .jpeg, .png: 262_144
    case .h264, .vp8: EncodedPicture.maxBytes
    default: 65_536
    }
  }
}
