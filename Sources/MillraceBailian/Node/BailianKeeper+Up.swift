internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// From the node to the service.
extension BailianKeeper {
  /// Looks at everything the node may have left.
  func look() {
    guard !isStopped else { return }
    if exchange.isStopped.load(ordering: .sequentiallyConsistent) { return stop() }
    let voids = exchange.foreignVoids.load(ordering: .acquiring)
    if voids != seenVoids {
      seenVoids = voids
      // As far as the keeper had read them, they were the voided reply's.
      heldSounds.clear()
      exchange.knownBefore.store(exchange.sounds.end, ordering: .relaxed)
      exchange.knownVoids.store(voids, ordering: .releasing)
      tell(.voided)
    }
    let delivered = exchange.delivered.load(ordering: .acquiring)
    if delivered != seenDelivered {
      seenDelivered = delivered
      tell(.delivered)
    }
    takeRecords()
    carryKept()
    handOn()
    if exchange.isSoundOver.load(ordering: .acquiring) && silenceAt == nil {
      silenceAt = clock.now + sound.frame
      tell(.soundOver)
    }
    if exchange.isOver.load(ordering: .acquiring) && !hasHungUp && exchange.outgoing.peek() == nil {
      hasHungUp = true
      tell(.leaving)
    }
  }

  private func takeRecords() {
    var taken = 0
    while let record = exchange.outgoing.peek() {
      let bytes = unsafe Array(record.bytes)
      exchange.outgoing.drop(record)
      taken += 1
      switch record.kind {
      case BailianExchange.Out.sound: take(sound: bytes)
      case BailianExchange.Out.part: parts += bytes
      default:
        let whole = parts + bytes
        parts = []
        take(message: whole, record.kind)
      }
    }
    if taken > 0 { exchange.waker.wake() }
  }

  private func take(message bytes: [UInt8], _ kind: UInt8) {
    switch kind {
    case BailianExchange.Out.control: control(bytes)
    case BailianExchange.Out.text:
      let text = String(decoding: bytes, as: UTF8.self)
      tell(.command(asksText ? .ask(text, images: []) : .say(text)))
    default: sendPicture(bytes)
    }
  }

  /// A frame of the user's sound.
  private func take(sound record: [UInt8]) {
    let bytes = Array(record.dropFirst(4))
    let time = Nanoseconds(Self.number(record)) * 1_000
    switch session.uplink {
    case .drop: break
    case .keep: kept.push(bytes.span, duration: time)
    case .send, .silence:
      // What was kept is older.
      carryKept()
      let frame = session.uplink == .silence ? silent(bytes[...]) : bytes
      if kept.isEmpty && !isCongested {
        upload(frame)
      } else {
        kept.push(frame.span, duration: time)
      }
    }
  }

  private func upload(_ frame: [UInt8]) {
    latestSecond.add(frame.count)
    let bytes = pages != nil ? pages?.add(frame) ?? [] : frame
    if !bytes.isEmpty { _ = socket?.send(bytes, isText: false) }
  }

  /// What follows is a stream of its own, where sound goes up in Ogg.
  func beginStream() {
    guard sound.isOgg else { return }
    pages = OggPages(rate: sound.rate, milliseconds: Int(sound.frame / 1_000_000))
  }

  /// Nothing more is said. What is kept of it goes up whatever the network takes: a sentence without its end is worse than a late one.
  func endStream() {
    while let frame = popKept() { upload(session.isMuted ? silent(frame[...]) : frame) }
    tellUnsent()
    kept.clear()
    guard let last = pages?.end(), !last.isEmpty else { return }
    _ = socket?.send(last, isText: false)
  }

  /// The network takes less than is said. What the user says now matters more than what they said seconds ago, which would only come
  /// later and later: from here on the latest is kept, and the oldest let go of.
  private var isCongested: Bool { (socket?.backlog ?? 0) > max(Self.leastBacklog, latestSecond.bytes) }

  private func popKept() -> [UInt8]? {
    var frame: [UInt8] = []
    let isThere = kept.pop { bytes in for index in bytes.indices { frame.append(bytes[index]) } }
    return isThere ? frame : nil
  }

  /// As much silence as a frame of sound has.
  private func silent(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    guard sound.isOpus, let head = bytes.first else { return [UInt8](repeating: 0, count: bytes.count) }
    // RFC 6716 section 3.2: frames without content, as many as there were; a decoder conceals them with nothing.
    switch head & 3 {
    case 2: return [head, 0]
    case 3: return [head, (bytes.dropFirst().first ?? 1) & 0x3F]
    default: return [head]
    }
  }

  /// What was kept goes before what comes now, or is let go of.
  func carryKept() {
    guard !kept.isEmpty || kept.lost > 0 else { return }
    switch session.uplink {
    case .keep: return
    case .drop: kept.clear()
    case .silence, .send:
      let isSilent = session.uplink == .silence
      while !isCongested, let frame = popKept() { upload(isSilent ? silent(frame[...]) : frame) }
      guard kept.isEmpty else { return }
      tellUnsent()
      kept.clear()
    }
  }

  /// What was said and will never be sent, because it was too much to keep.
  private func tellUnsent() {
    guard kept.lost > 0 else { return }
    post(.extra(name: "unsent", payload: ["ms": .integer(Int(kept.lost / 1_000_000))]))
  }

  /// In the place of a microphone that has ended, in time with the clock.
  func sendSilence() {
    guard let due = silenceAt, session.phase != .closed else {
      silenceAt = nil
      return
    }
    guard sound.silentBytes > 0 else { return }
    let now = clock.now
    if now >= due {
      if session.uplink == .send || session.uplink == .silence {
        _ = socket?.send([UInt8](repeating: 0, count: sound.silentBytes), isText: false)
      }
      silenceAt = max(due + sound.frame, now - sound.frame)
    }
    setTimer()
  }

  private func control(_ record: [UInt8]) {
    let valid = Self.number(record)
    do {
      switch try DialogControl.read(try JSONValue(parsing: Array(record.dropFirst(4)))) {
      case .command(let command)?: tell(.command(command))
      case .playback(.audible(let reply))? where reply == valid: tell(.audible)
      case .playback(.finished(let reply, _, _))? where reply == valid: tell(.finished)
      // Reports of replies that are void, or of what was cut off: the session knows.
      case .playback, nil: break
      }
    } catch {
      post(
        .error(
          DialogError(
            vendor: "bailian", category: .request, reaction: .goOn, text: "no command: \(error)")))
    }
  }

  private func sendPicture(_ bytes: [UInt8]) {
    guard session.takesPictures else { return }
    guard bytes.count <= Self.mostPicture else {
      return post(
        .error(
          DialogError(
            vendor: "bailian", category: .request, reaction: .goOn,
            text: "a picture of \(bytes.count) bytes is more than \(Self.mostPicture); it was not sent")))
    }
    let images: JSONValue = ["images": [["type": "base64", "value": .string(Base64.encode(bytes))]]]
    tell(.command(.update(images)))
  }

  private static func number(_ record: [UInt8]) -> Int {
    (0..<4).reduce(0) { $0 | Int(record[$1]) << (8 * $1) }
  }
}
