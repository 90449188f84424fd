internal import CMPG123
internal import MillraceCore

/// An owned libmpg123 decoder in feed mode. Not thread-safe.
///
/// Feed it whole frames, one at a time, and call `next` until the previous one is decoded: what the library makes of damage depends on where its
/// input is cut. For a frame damaged inside, it also reads memory it never wrote (libmpg123 1.31.2 under valgrind), so the samples of such
/// a frame differ from run to run and may be NaN; their count does not. The library allocates when the decoder is made and opened; while a
/// stream runs it uses a pool of buffers.
@safe
struct LibMPG123: ~Copyable {
  /// One decoded frame. The samples are valid until the next call.
  @unsafe
  struct Frame {
    var start: UnsafeRawPointer
    var byteCount: Int
    /// From the frame's header, independent of the output format.
    var rate: Int
    var channels: Int
  }

  /// The result of decoding.
  @unsafe
  enum Step {
    case frame(Frame)
    case needsMore
    /// The library returned this error. It may continue after more input.
    case failed(Int32)
  }

  /// The sample rates of MPEG audio, in Hz (ISO/IEC 11172-3, 13818-3, and 8 to 12 kHz of "MPEG 2.5").
  static let rates = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
  /// Samples per channel of the longest frame: layers II and III of MPEG 1.
  static let longestFrame = 1_152

  /// Most results without audio accepted in a row: some damage makes the library return "continue" forever.
  private static let maximumEmptyResults = 256

  private let handle: OpaquePointer
  private let frameBytes: Int
  private let sample: SampleType

  /// Twice full scale: audio that was clipped before encoding overshoots full scale by a little, no more.
  private static let loudest: Float = 2

  /// Makes a decoder whose output has `channels` channels, 1 or 2, whatever the stream has. Control side.
  init(channels: Int, sample: SampleType) throws(NodeProblem) {
    var code: Int32 = 0
    _ = mpg123_init()
    guard let handle = unsafe mpg123_new(nil, &code) else {
      throw NodeProblem("libmpg123 cannot create a decoder: \(Self.message(for: code))")
    }
    unsafe self.handle = unsafe handle
    frameBytes = channels * sample.byteCount
    self.sample = sample
    let fold = channels == 1 ? MPG123_MONO_MIX : MPG123_FORCE_STEREO
    set(MPG123_ADD_FLAGS, Int(MPG123_QUIET.rawValue | MPG123_NO_READAHEAD.rawValue | fold.rawValue))
    // Search for the next frame without limit; by default the library gives up after 1,024 bytes, yet continues.
    set(MPG123_RESYNC_LIMIT, -1)
    _ = unsafe mpg123_format_none(handle)
    let encoding = sample == .s16 ? MPG123_ENC_SIGNED_16 : MPG123_ENC_FLOAT_32
    for rate in Self.rates {
      _ = unsafe mpg123_format(handle, rate, Int32(channels), Int32(encoding.rawValue))
    }
  }

  deinit { unsafe mpg123_delete(handle) }

  private borrowing func set(_ parameter: mpg123_parms, _ value: Int) {
    _ = unsafe mpg123_param2(handle, Int32(bitPattern: parameter.rawValue), value, 0)
  }

  /// Starts another stream.
  mutating func open() { _ = unsafe mpg123_open_feed(handle) }

  /// Feeds a frame; its bytes are copied.
  mutating func feed(_ bytes: Span<UInt8>) {
    _ = unsafe bytes.withUnsafeBufferPointer { unsafe mpg123_feed(handle, $0.baseAddress, $0.count) }
  }

  /// Decodes the next frame.
  @unsafe
  mutating func next() -> Step {
    for _ in 0..<Self.maximumEmptyResults {
      var number: off_t = 0
      var start: UnsafeMutablePointer<UInt8>?
      var count = 0
      let code = unsafe mpg123_decode_frame(handle, &number, &start, &count)
      if count >= frameBytes, let start = unsafe start {
        if sample == .f32 { unsafe sanitize(UnsafeMutableRawPointer(start), count) }
        return unsafe .frame(describe(start, count))
      }
      switch code {
      // A frame without samples: an encoder's info frame, or one removed for gapless playback.
      case Int32(MPG123_OK.rawValue), MPG123_NEW_FORMAT.rawValue: continue
      case MPG123_NEED_MORE.rawValue, MPG123_DONE.rawValue: return unsafe .needsMore
      default: return unsafe .failed(code)
      }
    }
    return unsafe .needsMore
  }

  /// Replaces NaN by silence and clips the rest, in the library's own memory.
  @unsafe
  private borrowing func sanitize(_ start: UnsafeMutableRawPointer, _ byteCount: Int) {
    let samples = unsafe start.assumingMemoryBound(to: Float.self)
    for index in 0..<byteCount / MemoryLayout<Float>.stride {
      let value = unsafe samples[index]
      unsafe samples[index] = value == value ? max(-Self.loudest, min(Self.loudest, value)) : 0
    }
  }

  @unsafe
  private borrowing func describe(_ start: UnsafePointer<UInt8>, _ count: Int) -> Frame {
    var info = mpg123_frameinfo2()
    _ = unsafe mpg123_info2(handle, &info)
    return unsafe Frame(
      start: UnsafeRawPointer(start), byteCount: count, rate: Int(info.rate),
      channels: info.mode == Int32(bitPattern: MPG123_M_MONO.rawValue) ? 1 : 2)
  }

  /// The library's message for an error code.
  static func message(for code: Int32) -> String { unsafe String(cString: mpg123_plain_strerror(code)) }
}
