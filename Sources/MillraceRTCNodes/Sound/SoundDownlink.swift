internal import MillraceCodecs
internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSound
internal import Synchronization

/// From the sessions to a node's output: received sound, played in order and on time.
///
/// - In: records `sound` and `soundEnd` of `RTCExchange.soundDown`. Out, for PCM: all sources together, in packets of 10 ms every 10 ms
///   of the graph's clock from the first sound on (`SoundMixer`). For Opus: the packets of one source (`SoundRelay`).
/// - Without an output, records are dropped.
/// - Node's thread. No heap for a packet; a source that begins may allocate, once for its codec. A call takes at most `mostRecords`
///   records and emits at most `mostPackets` packets.
struct SoundDownlink: ~Copyable {
  private static let mostRecords = 64
  private static let mostPackets = 4

  private let mixer: SoundMixer?
  private let relay: SoundRelay?
  /// Records that are no sound.
  private var broken = 0
  /// A packet is due, and the output has no room.
  private var isBlocked = false

  /// Creates a downlink; reserves its memory.
  /// - Parameters:
  ///   - shape: of the output; nil: what comes is dropped.
  ///   - taps: outputs of single media; the shape is PCM then.
  ///   - sources: heard at the same time, for PCM.
  /// - Throws: when the output can carry no sound that is received.
  init(
    _ shape: OutputShape?, _ settings: SoundDownlinkSettings, taps: [SoundTapRequest] = [],
    sources: Int = SoundMixer.usualSources
  ) throws(NodeProblem) {
    var (mixer, relay): (SoundMixer?, SoundRelay?) = (nil, nil)
    if let shape {
      if shape.format.kind == .opus {
        relay = try SoundRelay(shape, settings.delays)
      } else {
        mixer = try SoundMixer(shape, settings.player, taps: taps, sources: sources)
      }
    }
    self.mixer = mixer
    self.relay = relay
  }

  // MARK: Calls

  /// Takes what has come, and emits what is due. Without work, asks for a call when the next packet is due, unless the output has no
  /// room: then room wakes the node.
  /// - Parameters:
  ///   - output: nil: only single media are wanted.
  ///   - reply: what the packets belong to: `.none` for somebody's voice, `ports.currentReply` for a bot's.
  /// - Returns: true when there was work, and there may be more: it is to be called again at once.
  mutating func process(
    _ ports: inout Ports, output: Int?, exchange: RTCExchange, reply: HeldReply = .none
  ) throws(NodeFault) -> Bool {
    var worked = takeRecords(exchange, at: ports.now)
    var emitted = 0
    isBlocked = false
    while emitted < Self.mostPackets, let time = next, time <= ports.now {
      if let output, !ports.hasRoomOrRequestsWake(output) {
        isBlocked = true
        break
      }
      try mixer?.emit(&ports, output, of: reply)
      if let output { try relay?.emit(&ports, output, of: reply) }
      emitted += 1
    }
    if emitted > 0 { worked = true }
    if !worked, let due { ports.wake(at: due) }
    return worked
  }

  /// The reply that the sound belongs to was interrupted: discards what was received and not played.
  mutating func discard(_ exchange: RTCExchange) {
    while let record = exchange.soundDown.peek() { exchange.soundDown.drop(record) }
    if exchange.soundDown.takeRequest() { exchange.wakeSessions() }
    mixer?.discard()
    relay?.discard()
  }

  private mutating func takeRecords(_ exchange: RTCExchange, at now: Nanoseconds) -> Bool {
    var taken = 0
    while taken < Self.mostRecords, let record = exchange.soundDown.peek() {
      let bytes = unsafe record.bytes
      take(record.kind, unsafe bytes.span, unsafe SoundDownHead.load(bytes), at: now)
      exchange.soundDown.drop(record)
      taken += 1
    }
    if taken > 0 && exchange.soundDown.takeRequest() { exchange.wakeSessions() }
    return taken > 0
  }

  private mutating func take(
    _ kind: UInt8, _ bytes: Span<UInt8>, _ head: SoundDownHead?, at now: Nanoseconds
  ) {
    guard let head, bytes.count >= SoundDownHead.byteCount else { return broken += 1 }
    switch kind {
    case MediaRecord.sound:
      let payload = bytes.extracting(SoundDownHead.byteCount..<bytes.count)
      mixer?.take(head, payload, at: now)
      relay?.take(head, payload, at: now)
    case MediaRecord.soundEnd:
      mixer?.end(head.source)
      relay?.end(head.source)
    default: broken += 1
    }
  }

  // MARK: State

  /// When the next packet is due; nil: nothing has come yet, nothing waits, or the output has no room, and wakes the node when it has.
  var due: Nanoseconds? { isBlocked ? nil : next }

  private var next: Nanoseconds? { mixer?.due ?? relay?.due }

  /// True while something of what was received is left to play.
  var hasSound: Bool { mixer?.hasSound ?? relay?.hasSound ?? false }

  /// Sources that are heard now, at most those of `init`.
  var sourceCount: Int { mixer?.sourceCount ?? relay?.sourceCount ?? 0 }

  /// Measurements of levels since the start: one every 200 ms of PCM. A new number means new levels.
  var measurements: Int { mixer?.measurements ?? 0 }

  /// Calls `body` with each source that is heard. No heap.
  func forEachSource(_ body: (HeardSource) -> Void) {
    mixer?.forEachSource(body)
    relay?.forEachSource(body)
  }

  /// When sound is played, on the graph's clock, that was captured at a time of its sender's wall clock (nanoseconds since 1900); nil: not
  /// known, and pictures are shown as they come.
  /// - Parameters:
  ///   - source: of the picture, as in its head: sound of the same session counts. Nil: any.
  ///   - sound: as in the head of the picture: in a session with several participants only their own sound counts.
  func playTime(
    ofCapture capture: Int64, source: UInt64? = nil, sound: UInt8 = PictureDownHead.anySound
  ) -> Nanoseconds? {
    let session = source.map { $0 >> 32 }
    let medium = sound == PictureDownHead.anySound ? nil : sound
    return mixer?.playTime(ofCapture: capture, session: session, medium: medium)
      ?? relay?.playTime(ofCapture: capture, session: session, medium: medium)
  }

  /// What became of all sound that was received.
  var counts: HeardSound {
    var all = mixer?.counts ?? relay?.counts ?? HeardSound()
    all.damaged += broken
    return all
  }
}
