internal import MillraceCodecs
internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import Synchronization

/// From a node's input to the sessions: sound, encoded in the codec that the peers agreed on.
///
/// - In: PCM of 8 to 96 kHz, 1 or 2 channels, in packets of any length, or Opus packets. Out: records `sound` in `RTCExchange.soundUp`.
/// - PCM is cut into packets of `ptime`, converted to the codec's rate, and encoded; L16 into shorter ones where the network has no larger
///   packets. Opus packets pass unchanged where Opus was agreed on, and are refused elsewhere.
/// - It sends sound as it comes: what comes faster than real time has to be held back before it.
/// - Gaps of the input's positions, packets that found no room and silence that Opus does not send become the `pause` of the next
///   packet, so that the sender's clock keeps its time. While it is muted, silence is sent.
/// - The end of an utterance, and of the input, sends what is left, completed with silence.
/// - While nobody takes sound, the input is drained and counted. Nothing waits for the network.
/// - Node's thread. No heap, lock or system call but one wake-up of the sessions' thread a call, which encodes at most `mostFrames`
///   frames. Only when another codec than before is agreed on, its encoder is made.
struct SoundUplink: ~Copyable {
  /// Most frames that one call encodes, and most pieces that it converts.
  private static let mostFrames = 8
  private static let mostPieces = 64
  /// A jump of positions, in seconds, beyond which the stream is another one, and nothing was paused.
  private static let longestPause: Int64 = 3_600
  /// Bitrates of Opus (RFC 6716 section 2.1.1).
  private static let bitrates = 6_000...510_000

  /// Highest bitrate of Opus in bits a second: the live parameter. The network may allow less.
  var bitrate: Int
  /// Silence takes the place of the sound.
  var isMuted = false

  private let rate: Int
  private let channels: Int
  /// Nil: the input carries Opus.
  private let sample: SampleType?
  private let ptime: Int
  private let settings: SoundUplinkSettings
  /// The only lane that there is, of the first codec or of the one agreed on last; nil: there is nothing to encode.
  private var made: SoundLane?
  /// The lane of the codec agreed on; nil: none, or there is nothing to encode.
  private var lane: SoundLane?
  private var outbox = SoundOutbox()
  private var refusal: SoundRefusal?
  private var lastRefusal: SoundRefusal?

  /// The packet whose samples are being cut into frames: what is consumed of it, and what is left.
  private var held: Packet?
  private var heldOffset = 0
  private var heldRest = 0
  private var reply = HeldReply()
  /// Silence to be fed before the held packet, in frames of the input; then the frame is completed.
  private var silence = 0
  private var pads = false
  /// Frames of the input that were not sent, to be added to the pause after padding.
  private var unsent: Int64 = 0
  /// Frames of the input that padding has sent ahead of their time.
  private var ahead: Int64 = 0
  /// The position after the latest packet; nil: none came since sound was taken.
  private var expected: Int64?
  private var speech = SpeechLevel()
  private var endsUtterance = false
  private var isFlushed = false

  /// Creates an uplink; reserves its memory for the first codec.
  /// - Parameter shape: of the input: PCM or Opus.
  /// - Throws: when the input cannot be converted to one of the codecs.
  init(_ shape: OutputShape, _ settings: SoundUplinkSettings) throws(NodeProblem) {
    guard SoundUplinkSettings.packetTimes.contains(settings.ptime) else {
      throw NodeProblem(
        "packets of \(settings.ptime) ms are not possible with every codec", parameter: "ptime",
        cure: "set 10, 20, 40 or 60")
    }
    var made: SoundLane?
    let width: Int
    let kind: SampleType?
    switch shape.format {
    case .pcm(let rate, let channels, let sample):
      guard (8_000...96_000).contains(rate), (1...2).contains(channels) else {
        throw NodeProblem(
          "sound of \(rate) Hz with \(channels) channels cannot be sent",
          cure: "add audio.resample or audio.convert before it: 8000 to 96000 Hz, 1 or 2 channels")
      }
      width = channels
      kind = sample
      for codec in settings.codecs where codec.kind != .telephone {
        // Each once, as a codec that cannot be sent is an error now, and not in a call.
        let lane = try SoundLane(codec, rate: rate, channels: channels, settings)
        if made == nil { made = lane }
      }
    case .opus(_, let channels):
      width = channels
      kind = nil
    default: throw NodeProblem("\"audio\" takes PCM or Opus", cure: "decode it before")
    }
    self.made = made
    self.settings = settings
    rate = shape.format.rate ?? OpusPayload.clockRate
    channels = width
    sample = kind
    bitrate = settings.bitrate
    ptime = settings.ptime
    held = nil
  }

  /// Nothing can be heard in the latest packet of PCM; a packet of Opus always counts as heard. Silence does not keep a graph from
  /// draining: the reference of a loudspeaker never ends.
  private(set) var isSilent = true
  /// In dBFS: below the least bit of 16.
  private static let silence = -96.0

  /// What became of the sound of the input since the start.
  var counts: SoundUplinkCounts { outbox.counts }

  /// Why sound is refused, once for each reason in a row.
  mutating func takeRefusal() -> SoundRefusal? {
    defer { refusal = nil }
    return refusal
  }

  // MARK: Calls

  /// Takes and sends what is there. True when there was work, and there may be more.
  mutating func process(_ ports: inout Ports, input: Int, exchange: RTCExchange) -> Bool {
    let isTaken = follow(exchange)
    var worked = false
    var (frames, pieces) = (Self.mostFrames, Self.mostPieces)
    while frames > 0 && pieces > 0 {
      pieces -= 1
      if lane?.isFull == true {
        send(exchange)
        frames -= 1
      } else if !advance() {
        if let packet = ports.next(input) {
          if !isTaken {
            if outbox.codec == 0 { outbox.counts.unheard += 1 } else { outbox.counts.refused += 1 }
          } else if sample == nil {
            pass(packet, exchange)
            frames -= 1
          } else {
            take(packet)
          }
        } else if !isFlushed && ports.isOver(input) {
          isFlushed = true
          flush()
        } else {
          break
        }
      }
      worked = true
    }
    outbox.wake(exchange)
    return worked
  }

  /// A reply was interrupted: what is left of it is discarded.
  mutating func interrupted(at generation: UInt32) {
    guard reply.isStale(at: generation) else { return }
    forget()
  }

  private mutating func forget() {
    held = nil
    (heldRest, silence, pads, unsent, ahead, expected, endsUtterance) = (0, 0, false, 0, 0, nil, false)
    lane?.reset()
  }

  // MARK: Agreement

  /// Follows what the sessions agreed on. False while nobody takes sound that this node can send.
  private mutating func follow(_ exchange: RTCExchange) -> Bool {
    let takers = exchange.takers.load(ordering: .relaxed)
    let packed = takers > 0 ? exchange.soundCodec.load(ordering: .acquiring) : 0
    if packed != outbox.codec { agree(on: packed) }
    guard let lane else { return sample == nil && packed != 0 && refusesOpus == nil }
    let allowed = exchange.soundBitrate.load(ordering: .relaxed)
    let most = allowed > 0 ? min(allowed, bitrate) : bitrate
    lane.encoder.follow(
      bitrate: min(max(most, Self.bitrates.lowerBound), Self.bitrates.upperBound),
      loss: min(max(0, exchange.soundLoss.load(ordering: .relaxed)), 1_000))
    return true
  }

  private mutating func agree(on packed: UInt64) {
    outbox.codec = packed
    forget()
    lane = nil
    outbox.pause = 0
    guard let codec = SoundCodec(packed: packed) else { return }
    if sample == nil {
      if let reason = refusesOpus { refuse(reason) }
      return
    }
    lane = takeLane(codec)
    lane?.reset()
    if lane == nil { refuse(.noEncoder(codec)) }
  }

  /// The lane of a codec: the one that there is, or another in its place. Nil: the codec is not listed.
  private mutating func takeLane(_ codec: SoundCodec) -> SoundLane? {
    func fits(_ other: SoundCodec) -> Bool {
      other.packed == codec.packed || other.kind == .opus && codec.kind == .opus
    }
    if let made, fits(made.encoder.codec) { return made }
    guard let listed = settings.codecs.first(where: fits) else { return nil }
    // Not two at a time.
    made = nil
    do throws(NodeProblem) {
      let lane = try SoundLane(listed, rate: rate, channels: channels, settings)
      made = lane
      return lane
    } catch { return nil }
  }

  /// Why packets of Opus cannot be sent; nil: they can.
  private var refusesOpus: SoundRefusal? {
    guard let codec = SoundCodec(packed: outbox.codec), codec.kind != .opus else { return nil }
    return .opusNotAgreed(codec)
  }

  private mutating func refuse(_ reason: SoundRefusal) {
    guard reason != lastRefusal else { return }
    (refusal, lastRefusal) = (reason, reason)
  }

  // MARK: PCM

  private mutating func take(_ packet: consuming Packet) {
    reply.follow(packet)
    endsUtterance = packet.flags.contains(.endOfUtterance)
    let frames =
      packet.flags.contains(.lost) ? 0 : Int(packet.byteCount) / (channels * (sample?.byteCount ?? 2))
    guard frames > 0 else {
      // What is lost shows as a gap.
      if endsUtterance { flush() }
      return
    }
    isFlushed = false
    if let expected { noteGap(packet.position &- expected) }
    expected = packet.position &+ Int64(frames)
    (heldOffset, heldRest) = (0, frames)
    held = consume packet
  }

  /// Notes that positions jump by so many frames. A short gap is filled with silence, a long one is not sent.
  private mutating func noteGap(_ gap: Int64) {
    guard gap > 0, gap <= Self.longestPause * Int64(rate) else { return }
    let early = min(gap, ahead)
    ahead -= early
    let rest = gap - early
    guard let lane, rest > 2 * Int64(rate * ptime / 1_000) else { return silence = Int(rest) }
    if lane.holdsSound {
      silence = lane.latency
      pads = true
    }
    unsent = rest - Int64(silence)
  }

  /// Has what is left sent, completed with silence.
  private mutating func flush() {
    endsUtterance = false
    guard let lane, lane.holdsSound else { return }
    silence = lane.latency
    pads = true
    ahead = min(ahead + Int64(silence), Int64(rate))
  }

  /// Works on what is held. False when another packet is needed.
  private mutating func advance() -> Bool {
    guard let lane else {
      held = nil
      heldRest = 0
      return false
    }
    if lane.hasPiece {
      lane.advance()
    } else if silence > 0 {
      let count = min(silence, SoundLane.piece)
      silence -= count
      lane.loadSilence(count)
    } else if pads {
      pad(lane)
    } else if unsent > 0 {
      outbox.pause += Int64(lane.encoder.ticks(Int(rescale(unsent, from: rate, to: lane.encoder.rate))))
      unsent = 0
    } else if heldRest > 0 {
      load(lane)
    } else {
      return false
    }
    return true
  }

  private mutating func pad(_ lane: SoundLane) {
    pads = false
    let padded = rescale(Int64(lane.pad()), from: lane.encoder.rate, to: rate)
    let early = min(padded, unsent)
    unsent -= early
    ahead = min(ahead + padded - early, Int64(rate))
  }

  private mutating func load(_ lane: SoundLane) {
    guard let sample, let packet = held.take() else { return heldRest = 0 }
    let count = min(heldRest, SoundLane.piece)
    lane.load(packet, sample, from: heldOffset, count: count)
    heldOffset += count
    heldRest -= count
    if heldRest > 0 {
      held = consume packet
    } else if endsUtterance {
      flush()
    }
  }

  /// Encodes and sends the frame that is full.
  private mutating func send(_ exchange: RTCExchange) {
    guard let lane else { return }
    let duration = lane.encoder.ticks(lane.encoder.frame)
    let (count, level) = lane.encode(isMuted: isMuted)
    isSilent = level <= Self.silence
    speech.note(level, milliseconds: lane.encoder.milliseconds)
    guard count > 0 else {
      return outbox.skip(duration: duration)
    }
    let attenuation = UInt8(min(max(0, -level.rounded()), 127))
    outbox.put(
      unsafe lane.encoded(count), duration: duration, level: attenuation, isVoice: speech.isSpeaking, exchange
    )
  }

  // MARK: Opus

  /// Sends a packet of Opus as it is.
  private mutating func pass(_ packet: consuming Packet, _ exchange: RTCExchange) {
    let bytes = packet.samples(of: UInt8.self)
    guard !bytes.isEmpty, !packet.flags.contains(.lost) else { return }
    isSilent = false
    reply.follow(packet)
    let head: OpusPayload
    do throws(PayloadProblem) { head = try OpusPayload(parsing: bytes) } catch {
      outbox.counts.refused += 1
      return refuse(.malformed)
    }
    guard bytes.count <= SoundCodec.largestPayload else {
      outbox.counts.refused += 1
      return refuse(.tooLarge)
    }
    if let expected {
      let gap = packet.position &- expected
      if gap > 0, gap <= Self.longestPause * Int64(rate) {
        outbox.pause += rescale(gap, from: rate, to: OpusPayload.clockRate)
      }
    }
    expected = packet.position &+ Int64(head.samples * rate / OpusPayload.clockRate)
    if isMuted {
      outbox.putSilence(like: bytes, duration: head.samples, exchange)
    } else {
      outbox.put(bytes, duration: head.samples, level: 255, isVoice: false, exchange)
    }
  }
}
