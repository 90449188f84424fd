/// Which end of a graph a node type gives to the program.
package enum AppEnd: Sendable, Hashable {
  /// The program pushes: the engine makes a `SourceChannel` for the node.
  case source
  /// The program takes: the engine makes a `SinkChannel`.
  case sink
}

/// How a source behaves, as its node's parameters say.
package struct SourceSettings: Sendable {
  /// Packets that may be queued.
  package var capacity: Int
  /// A full queue drops what is sent; otherwise a send waits.
  package var drops = false
  /// What is sent belongs to the bot's reply that is valid at that moment.
  package var isReply = false
  /// A virtual clock stands still while nothing is queued.
  package var holdsClock = true

  /// Settings of a source with a queue of so many packets; what is left out: it waits, and carries no reply.
  package init(capacity: Int) { self.capacity = capacity }

  /// Settings by checked parameters of an `app.source`, for packets of a format.
  package init(_ parameters: ParameterValues, _ format: Format) {
    capacity =
      parameters.has("capacity") ? parameters.integer("capacity") : AppDefaults.capacity(of: format.kind)
    drops = parameters.string("whenFull") == "dropNewest"
    isReply = parameters.bool("replies")
    holdsClock = parameters.string("pacing") == Pacing.waits.rawValue
  }
}

/// Values of parameters that depend on the format.
package enum AppDefaults {
  /// Packets a queue holds: more than half a second of sound in packets of 20 ms, few pictures.
  package static func capacity(of kind: Format.Kind) -> Int {
    switch kind {
    case .jpeg, .png, .video: 4
    default: 32
    }
  }

  /// Bytes of the largest packet of a format without a fixed length.
  ///
  /// 7,662: the longest Opus packet, 48 frames of 2.5 ms (RFC 6716, section 3.2.5). 8,191: the longest ADTS frame (ISO/IEC 13818-7,
  /// 6.2). Pictures: what voice services take, 180,000 bytes, and some more.
  package static func maxBytes(of kind: Format.Kind) -> Int {
    switch kind {
    case .opus: 7_662
    case .aac: 8_191
    case .mp3, .ogg: 8_192
    case .jpeg, .png: 262_144
    default: 65_536
    }
  }
}
