public import MillraceCore

/// The packets waiting to enter an input, and the state of its stream.
struct BenchFeed {
  let shape: OutputShape?
  var waiting: [CapturedPacket] = []
  /// How many of `waiting` have entered; when all have, the array is emptied.
  var entered = 0
  var position: Int64 = 0
  var generation: UInt32 = 0
  var isToEnd = false
  var hasEnded = false

  init(shape: OutputShape?) { self.shape = shape }

  var isEmpty: Bool { entered == waiting.count }
}

extension NodeBench {
  /// Queues interleaved 16-bit PCM, cut into packets of the input's size; the last one may be shorter. Positions, durations and
  /// timestamps continue from what was pushed before.
  /// - Parameters:
  ///   - samples: interleaved samples. The input's format must be s16.
  ///   - input: the port; nil: the first linked one.
  ///   - timestamp: time of the first sample; nil: the time of its position.
  ///   - flags: flags of the first packet.
  public func push(
    _ samples: [Int16], to input: String? = nil, timestamp: Nanoseconds? = nil, flags: PacketFlags = []
  ) {
    pushPCM(samples, type: .s16, to: input, timestamp: timestamp, flags: flags)
  }

  /// Queues interleaved float PCM; otherwise as for 16-bit samples.
  public func push(
    _ samples: [Float], to input: String? = nil, timestamp: Nanoseconds? = nil, flags: PacketFlags = []
  ) {
    pushPCM(samples, type: .f32, to: input, timestamp: timestamp, flags: flags)
  }

  /// Queues one packet of UTF-8 text (or of JSON, for an `event` input), by default with the current time.
  public func push(text: String, to input: String? = nil, timestamp: Nanoseconds? = nil) {
    push(CapturedPacket(bytes: Array(text.utf8), timestamp: timestamp ?? now), to: input)
  }

  /// Queues one packet of bytes. The position advances by `duration` samples; the default timestamp is that of the position, or the
  /// current time for formats without a rate.
  public func push(
    bytes: [UInt8], to input: String? = nil, duration: Int = 0, timestamp: Nanoseconds? = nil,
    flags: PacketFlags = []
  ) {
    let index = self.input(input)
    let time =
      timestamp ?? feeds[index].shape?.format.rate.map { .samples(feeds[index].position, rate: $0) } ?? now
    push(
      CapturedPacket(
        bytes: bytes, timestamp: time, position: feeds[index].position, duration: duration,
        generation: feeds[index].generation, flags: flags),
      to: input)
  }

  /// Queues a packet exactly as given. The stream continues after its end. A packet of a reply newer than the bench's makes that reply
  /// the current one, without an interruption.
  public func push(_ packet: CapturedPacket, to input: String? = nil) {
    let index = self.input(input)
    guard packet.bytes.count <= feeds[index].shape!.packetBytes else {
      fatalError(
        "a packet of \(packet.bytes.count) bytes exceeds the input's \(feeds[index].shape!.packetBytes) bytes"
      )
    }
    guard !feeds[index].isToEnd else { fatalError("push to \"\(inputNames[index])\" after its end") }
    if packet.generation != 0 && Packet.isNewer(packet.generation, than: generation) {
      unsafe wiring.node.pointee.generation = packet.generation
    }
    feeds[index].waiting.append(packet)
    feeds[index].position = packet.position &+ Int64(packet.duration)
  }

  /// Sets the reply of packets pushed from now on; 0, the default: none.
  public func setGeneration(_ generation: UInt32, of input: String? = nil) {
    feeds[self.input(input)].generation = generation
  }

  /// Sets the position of the next pushed packet, to make a gap or a jump back.
  public func setPosition(_ position: Int64, of input: String? = nil) {
    feeds[self.input(input)].position = position
  }

  /// Ends an input after what is queued. Takes effect in `run`.
  public func end(_ input: String? = nil) {
    feeds[self.input(input)].isToEnd = true
  }

  private func pushPCM<S: BitwiseCopyable>(
    _ samples: [S], type: SampleType, to input: String?, timestamp: Nanoseconds?, flags: PacketFlags
  ) {
    let index = self.input(input)
    let shape = feeds[index].shape!
    guard case .pcm(let rate, let channels, type) = shape.format, let frames = shape.frames else {
      fatalError("\(type) samples pushed to \"\(inputNames[index])\", which carries \(shape.format)")
    }
    guard samples.count % channels == 0 else {
      fatalError("\(samples.count) samples are not a multiple of \(channels) channels")
    }
    let offset = timestamp.map { $0 - .samples(feeds[index].position, rate: rate) } ?? 0
    var first = 0
    while first < samples.count {
      let count = min(frames * channels, samples.count - first)
      let position = feeds[index].position
      push(
        CapturedPacket(
          bytes: CapturedPacket.bytes(of: samples[first..<first + count]),
          timestamp: .samples(position, rate: rate) + offset, position: position, duration: count / channels,
          generation: feeds[index].generation, flags: first == 0 ? flags : []),
        to: inputNames[index])
      first += count
    }
  }

  /// Moves waiting packets into their links while there is room.
  func feed() {
    unsafe wiring.feeder.pointee.now = now
    var outside = unsafe Ports(feederTable)
    for index in feeds.indices where feeds[index].shape != nil {
      while !feeds[index].isEmpty && outside.hasRoom(index) {
        let content = feeds[index].waiting[feeds[index].entered]
        do {
          var packet = try outside.makePacket(index, bytes: content.bytes.count, of: .none)
          content.fill(&packet)
          outside.emit(packet, to: index)
        } catch {
          fatalError(
            "the node keeps more packets of input \"\(inputNames[index])\" than its contract's \"holds\" says"
          )
        }
        feeds[index].entered += 1
      }
      if feeds[index].isEmpty {
        feeds[index].waiting.removeAll(keepingCapacity: true)
        feeds[index].entered = 0
        if feeds[index].isToEnd && !feeds[index].hasEnded {
          feeds[index].hasEnded = true
          wiring.inputLinks[index]?.end()
        }
      }
    }
  }
}

extension CapturedPacket {
  /// Writes content and metadata into a packet of the same size.
  func fill(_ packet: inout Packet) {
    packet.timestamp = timestamp
    packet.position = position
    packet.duration = duration
    packet.trimStart = trimStart
    packet.trimEnd = trimEnd
    packet.generation = generation
    packet.flags = flags
    var target = packet.mutableSamples(of: UInt8.self)
    for index in bytes.indices { target[index] = bytes[index] }
  }
}
