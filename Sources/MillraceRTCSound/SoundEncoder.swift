internal import MillraceCodecs
package import MillraceCore
internal import MillraceDSP
internal import MillraceRTCWire

/// Makes the payloads of one codec from frames of float PCM. Not thread-safe; no heap after `init`.
package class SoundEncoder {
  package let codec: SoundCodec
  /// Hz and channels of the frames.
  package let rate: Int
  package let channels: Int
  /// Samples per channel of a frame.
  package let frame: Int
  package let milliseconds: Int

  package init(_ codec: SoundCodec, rate: Int, channels: Int, milliseconds: Int) {
    self.codec = codec
    self.rate = rate
    self.channels = channels
    self.milliseconds = milliseconds
    frame = rate * milliseconds / 1_000
  }

  /// Bytes of the largest payload.
  package var largest: Int { fatalError("subclasses override largest") }

  /// Encodes a frame and returns the bytes written; 0: it is not sent.
  package func encode(_ samples: Span<Float>, into payload: inout MutableSpan<UInt8>) -> Int {
    fatalError("subclasses override encode")
  }

  /// Follows the network. Only Opus can.
  /// - Parameter loss: in thousandths of what is sent.
  package func follow(bitrate: Int, loss: Int) {}

  /// Forgets the sound before.
  package func reset() {}

  /// Samples of a duration at the codec's clock.
  package final func ticks(_ frames: Int) -> Int { Int(Int64(frames) * Int64(codec.clockRate) / Int64(rate)) }
}

/// Opus, at the lowest of its rates that keeps all of the input.
package final class OpusSoundEncoder: SoundEncoder {
  /// Packets of up to this many bytes hold no sound (libopus, `opus_encode`).
  private static let unsentBytes = 2
  /// The least expected loss, in percent, with which libopus sends copies at speech bitrates (`decide_fec` in libopus 1.3).
  private static let leastLoss = 10
  /// Most loss that is reported to the encoder, in percent: beyond it the copies take more than the sound.
  private static let mostLoss = 50

  private let encoder: LibopusEncoder
  private let fec: Bool
  private let dtx: Bool
  private var bitrate = 0
  private var loss = -1

  package init(_ codec: SoundCodec, rate: Int, channels: Int, _ settings: SoundUplinkSettings)
    throws(NodeProblem)
  {
    encoder = try LibopusEncoder(rate: rate, channels: channels, application: settings.application)
    fec = settings.fec
    dtx = settings.dtx
    super.init(codec, rate: rate, channels: channels, milliseconds: settings.ptime)
    encoder.set(rateControl: .cvbr)
    encoder.set(complexity: settings.complexity)
    encoder.set(discontinuous: settings.dtx)
    follow(bitrate: settings.bitrate, loss: 0)
  }

  /// What fits into a packet of the network; libopus never writes more.
  package override var largest: Int { SoundCodec.largestPayload }

  package override func encode(_ samples: Span<Float>, into payload: inout MutableSpan<UInt8>) -> Int {
    let room = payload.count
    let count = unsafe samples.withUnsafeBufferPointer { from in
      unsafe payload.withUnsafeMutableBufferPointer { to -> Int in
        guard let source = from.baseAddress, let target = to.baseAddress else { return 0 }
        return unsafe encoder.encode(
          UnsafeRawPointer(source), sample: .f32, frame: from.count / channels, to: target, room: room)
      }
    }
    return dtx && count <= Self.unsentBytes ? 0 : max(0, count)
  }

  package override func follow(bitrate: Int, loss: Int) {
    if bitrate != self.bitrate {
      self.bitrate = bitrate
      encoder.set(bitrate: bitrate)
    }
    guard loss != self.loss else { return }
    self.loss = loss
    let needsCopies = fec && loss > 0
    encoder.set(errorCorrection: needsCopies)
    encoder.set(expectedLoss: needsCopies ? min(max(loss / 10, Self.leastLoss), Self.mostLoss) : 0)
  }

  package override func reset() { encoder.reset() }
}

/// Codecs without memory: G.711 and L16.
package final class PCMSoundEncoder: SoundEncoder {
  private let samples: FrameBuffer

  /// - Parameter milliseconds: of a frame; fewer, when a packet of the network has no room for as many.
  package init(_ codec: SoundCodec, milliseconds: Int) {
    let bytes = codec.kind == .l16 ? L16.bytesPerSample * codec.channels : 1
    let most = SoundCodec.largestPayload * 1_000 / max(1, bytes * codec.clockRate)
    let milliseconds = max(1, min(milliseconds, most))
    samples = FrameBuffer(byteCount: codec.clockRate * milliseconds / 1_000 * codec.channels * 2)
    super.init(
      codec, rate: codec.clockRate, channels: codec.channels, milliseconds: milliseconds)
  }

  package override var largest: Int { samples.byteCount }

  package override func encode(_ sound: Span<Float>, into payload: inout MutableSpan<UInt8>) -> Int {
    var short = unsafe samples.room(for: Int16.self, count: sound.count)
    SampleConversion.convert(sound, into: &short)
    let made = unsafe samples.contents(of: Int16.self, count: sound.count)
    switch codec.kind {
    case .pcmu: return G711.encode(made, .mu, into: &payload)
    case .pcma: return G711.encode(made, .a, into: &payload)
    default: return L16.encode(made, into: &payload)
    }
  }
}
