internal import MillraceNet
internal import MillraceRTCSound

/// Packets of sound on their way to the sessions: writes the records, counts them, and keeps account of what was not sent, so that the
/// sender's clock keeps its time. Node's thread; no heap.
struct SoundOutbox {
  /// `SoundCodec.packed` of the codec agreed on.
  var codec: UInt64 = 0
  /// Samples at the codec's clock that were not sent since the latest packet.
  var pause: Int64 = 0
  var counts = SoundUplinkCounts()
  private var hasPut = false

  /// Hands a packet over. Without room it is dropped: nothing waits for the network.
  /// - Parameters:
  ///   - duration: samples at the codec's clock.
  ///   - level: in dB below full scale; 255: not measured.
  mutating func put(
    _ payload: Span<UInt8>, duration: Int, level: UInt8, isVoice: Bool, _ exchange: RTCExchange
  ) {
    let start = SoundUpHead.byteCount
    let count = start + payload.count
    guard count <= RTCExchange.soundBytes, exchange.soundUp.hasRoom(count) else {
      counts.dropped += 1
      pause += Int64(duration)
      return
    }
    let head = SoundUpHead(
      codec: codec, duration: UInt32(clamping: duration), pause: UInt32(clamping: pause), level: level,
      isVoice: isVoice)
    unsafe exchange.soundUp.put(MediaRecord.sound, count: count) { target in
      unsafe head.store(to: target)
      for index in payload.indices { unsafe target[start + index] = payload[index] }
    }
    pause = 0
    counts.packets += 1
    hasPut = true
  }

  /// A packet that is not sent, because there is only silence in it.
  mutating func skip(duration: Int) {
    counts.silent += 1
    pause += Int64(duration)
  }

  /// Sends as many empty frames as a packet of Opus has, which a decoder conceals (RFC 6716 section 3.2.1).
  mutating func putSilence(like packet: Span<UInt8>, duration: Int, _ exchange: RTCExchange) {
    var empty: InlineArray<2, UInt8> = [packet[0], 0]
    var count = 1
    switch packet[0] & 3 {
    case 2: count = 2
    case 3:
      empty[1] = packet[1] & 0x3F
      count = 2
    default: break
    }
    put(empty.span.extracting(0..<count), duration: duration, level: 127, isVoice: false, exchange)
  }

  /// Wakes the sessions' thread when packets were handed over.
  mutating func wake(_ exchange: RTCExchange) {
    guard hasPut else { return }
    hasPut = false
    exchange.wakeSessions()
  }
}
