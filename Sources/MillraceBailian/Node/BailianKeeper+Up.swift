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
      heldSounds = []
      heldBytes = 0
      tell(.voided)
    }
    let delivered = exchange.delivered.load(ordering: .acquiring)
    if delivered != seenDelivered {
      seenDelivered = delivered
      tell(.delivered)
    }
    takeRecords()
    handOn()
    if exchange.isSoundOver.load(ordering: .acquiring) && silenceAt == nil {
      silenceAt = clock.now + sound.frame
      tell(.soundOver)
    }
    if exchange.isOver.load(ordering: .acquiring) && !hasHungUp && exchange.outgoing.peek() == nil {
      hasHungUp = true
      tell(.command(.hangUp))
    }
  }

  private func takeRecords() {
    var taken = 0
    while let record = exchange.outgoing.peek() {
      let bytes = unsafe Array(record.bytes)
      if record.kind == BailianExchange.Out.sound {
        guard send(bytes) else { break }
      }
      exchange.outgoing.drop(record)
      taken += 1
      switch record.kind {
      case BailianExchange.Out.control: control(bytes)
      case BailianExchange.Out.text:
        let text = String(decoding: bytes, as: UTF8.self)
        tell(.command(asksText ? .ask(text, images: []) : .say(text)))
      case BailianExchange.Out.image: sendPicture(bytes)
      default: break
      }
    }
    if taken > 0 { exchange.waker.wake() }
  }

  /// A frame of the user's sound. False when it has to wait.
  private func send(_ record: [UInt8]) -> Bool {
    let bytes = record.dropFirst(4)
    switch session.uplink {
    case .drop: return true
    case .keep:
      kept.push(Array(bytes).span, duration: Nanoseconds(Self.number(record)) * 1_000)
      return true
    case .send: return socket?.send(Array(bytes), isText: false) ?? true
    case .silence: return socket?.send(silent(bytes), isText: false) ?? true
    }
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
    guard !kept.isEmpty else { return }
    switch session.uplink {
    case .keep: return
    case .drop: kept.clear()
    case .silence, .send:
      let isSilent = session.uplink == .silence
      while !kept.isEmpty {
        var frame: [UInt8] = []
        _ = kept.pop { bytes in for index in bytes.indices { frame.append(bytes[index]) } }
        if isSilent { frame = silent(frame[...]) }
        if socket?.send(frame, isText: false) != true { break }
      }
      kept.clear()
    }
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
