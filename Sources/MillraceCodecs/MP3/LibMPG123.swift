internal import CMPG123
internal import MillraceCore

/// One decoder of libmpg123 in feed mode, owned: given back with the value. One thread at a time.
///
/// The library takes heap of its own when it is made and opened; while a stream runs it works in a pool of buffers, as long as
/// it is fed no more than ``pieceBytes`` at a time and asked for frames until it needs more.
@safe
struct LibMPG123: ~Copyable {
  /// One decoded frame. The samples are valid until the next call.
  @unsafe
  struct Frame {
    var start: UnsafeRawPointer
    var byteCount: Int
    /// Where the frame began in the stream, in bytes, and how long it was.
    var offset: Int64
    var size: Int
    /// What the frame's header says, whatever the output is.
    var rate: Int
    var channels: Int
    /// A tag came before it.
    var followsTag: Bool
  }

  /// What came next.
  @unsafe
  enum Step {
    case frame(Frame)
    case needsMore
    /// The library refuses; its code. It may go on when it is fed.
    case failed(Int32)
  }

  /// Most bytes to feed at once: one of the library's own buffers (its default MPG123_FEEDBUFFER).
  static let pieceBytes = 4_096
  /// The rates MPEG audio has, in Hz (ISO/IEC 11172-3, 13818-3, and 8 to 12 kHz of "MPEG 2.5").
  static let rates = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
  /// Samples per channel of the longest frame: layers II and III of MPEG 1.
  static let longestFrame = 1_152

  /// Frames without sound that are taken in a row, more than a piece can hold; some damage makes the library answer "go on" for
  /// ever.
  private static let patience = 256

  private let handle: OpaquePointer
  private let frameBytes: Int

  /// Makes a decoder whose output has `channels` channels, 1 or 2, whatever the stream has. Control side.
  init(channels: Int, sample: SampleType) throws(NodeProblem) {
    var code: Int32 = 0
    _ = mpg123_init()
    guard let handle = unsafe mpg123_new(nil, &code) else {
      throw NodeProblem("libmpg123 makes no decoder: \(Self.words(code))")
    }
    unsafe self.handle = unsafe handle
    frameBytes = channels * sample.byteCount
    let fold = channels == 1 ? MPG123_MONO_MIX : MPG123_FORCE_STEREO
    set(MPG123_ADD_FLAGS, Int(MPG123_QUIET.rawValue | fold.rawValue))
    // To look for the next frame as long as it takes; the library would give up after 1,024 bytes, and go on all the same.
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

  /// Begins another stream and forgets the one before.
  ///
  /// - Parameter isTrusted: the first frame header found is believed at once. Otherwise the header behind it must fit too,
  ///   which costs four bytes of waiting where packets are whole frames, and keeps text and noise from being taken for sound.
  mutating func open(isTrusted: Bool) -> Int32 {
    set(isTrusted ? MPG123_ADD_FLAGS : MPG123_REMOVE_FLAGS, Int(MPG123_NO_READAHEAD.rawValue))
    return unsafe mpg123_open_feed(handle)
  }

  /// Hands over bytes of the stream, at most ``pieceBytes``; they are copied.
  mutating func feed(_ bytes: Span<UInt8>) -> Int32 {
    unsafe bytes.withUnsafeBufferPointer { unsafe mpg123_feed(handle, $0.baseAddress, $0.count) }
  }

  /// Decodes the next frame there is.
  @unsafe
  mutating func next() -> Step {
    for _ in 0..<Self.patience {
      var number: off_t = 0
      var start: UnsafeMutablePointer<UInt8>?
      var count = 0
      let code = unsafe mpg123_decode_frame(handle, &number, &start, &count)
      if count >= frameBytes, let start = unsafe start { return unsafe .frame(describe(start, count)) }
      switch code {
      // A frame without samples: an encoder's own, or one that gapless playback leaves out.
      case Int32(MPG123_OK.rawValue), MPG123_NEW_FORMAT.rawValue: continue
      case MPG123_NEED_MORE.rawValue, MPG123_DONE.rawValue: return unsafe .needsMore
      default: return unsafe .failed(code)
      }
    }
    return unsafe .needsMore
  }

  @unsafe
  private borrowing func describe(_ start: UnsafePointer<UInt8>, _ count: Int) -> Frame {
    var info = mpg123_frameinfo2()
    _ = unsafe mpg123_info2(handle, &info)
    let followsTag = unsafe mpg123_meta_check(handle) & MPG123_NEW_ID3 != 0
    // To ask for the tag is what makes the mark go away.
    if followsTag { _ = unsafe mpg123_id3(handle, nil, nil) }
    return unsafe Frame(
      start: UnsafeRawPointer(start), byteCount: count, offset: Int64(mpg123_framepos(handle)),
      size: Int(info.framesize), rate: Int(info.rate),
      channels: info.mode == Int32(bitPattern: MPG123_M_MONO.rawValue) ? 1 : 2,
      followsTag: followsTag)
  }

  /// What a code of the library means.
  static func words(_ code: Int32) -> String { unsafe String(cString: mpg123_plain_strerror(code)) }
}
