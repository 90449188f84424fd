internal import MillraceDSP

/// Reads the frames of a WAV file, at any offset, as 16-bit or float samples.
///
/// Integers become floats with full scale 1.0. Wider samples become 16-bit by rounding to nearest and saturating; NaN is 0. A file
/// that grows while it is read keeps the length it had when opened; one that shrinks gives fewer frames. Blocks the calling thread:
/// not for the voice lane. No allocation after `init`. One thread at a time.
@safe public struct WAVReader: ~Copyable, @unchecked Sendable {
  /// Format, offset and length of the audio, and what was repaired.
  public let header: WAVHeader
  private let source: any ByteSource
  /// Bytes as read from the file.
  private let raw: UnsafeMutableRawPointer
  /// The same samples before conversion to 16 bits; nil for integers, which are converted directly and save 16 KB per reader.
  private let floats: UnsafeMutablePointer<Float>?
  /// Samples read and converted at a time: enough to make the system call cheap, few enough for the cache.
  private static let blockSamples = 4_096

  /// Opens a file.
  ///
  /// - Throws: ``WAVProblem`` when it cannot be opened or holds no supported audio.
  public init(path: String) throws(WAVProblem) {
    let file: FileBytes
    do { file = try FileBytes(reading: path) } catch { throw .file(error) }
    try self.init(source: file)
  }

  /// Reads from any byte source.
  public init(source: any ByteSource) throws(WAVProblem) {
    header = try WAVHeader(reading: source)
    self.source = source
    unsafe raw = .allocate(byteCount: Self.blockSamples * header.format.encoding.byteCount, alignment: 16)
    unsafe floats = header.format.encoding.isFloat ? .allocate(capacity: Self.blockSamples) : nil
    unsafe floats?.initialize(repeating: 0, count: Self.blockSamples)
  }

  deinit {
    unsafe raw.deallocate()
    unsafe floats?.deallocate()
  }

  /// Rate, channels, encoding.
  public var format: WAVFormat { header.format }

  /// Whole frames in the file.
  public var frameCount: Int64 { header.frameCount }

  /// Reads whole frames from frame `frame` on and returns how many; 0 at the end.
  public mutating func read(
    at frame: Int64, into output: inout MutableSpan<Int16>
  ) throws(WAVProblem) -> Int {
    let encoding = format.encoding
    guard let floats = unsafe floats else {
      return try read(at: frame, into: &output) { $0.decode(encoding, into: &$1) }
    }
    return try read(at: frame, into: &output) { bytes, part in
      var wide = unsafe MutableSpan(_unsafeStart: floats, count: part.count)
      bytes.decode(encoding, into: &wide)
      SampleConversion.convert(wide.span, into: &part)
    }
  }

  /// Reads whole frames from frame `frame` on as floats and returns how many; 0 at the end. NaN and infinities become silence,
  /// magnitudes above +120 dBFS are clamped.
  public mutating func read(
    at frame: Int64, into output: inout MutableSpan<Float>
  ) throws(WAVProblem) -> Int {
    let encoding = format.encoding
    return try read(at: frame, into: &output) {
      $0.decode(encoding, into: &$1)
      if encoding.isFloat { SampleMath.sanitize(&$1) }
    }
  }

  /// Reads block by block; `decode` converts the bytes of a block to samples.
  private func read<Sample: BitwiseCopyable>(
    at frame: Int64, into output: inout MutableSpan<Sample>,
    _ decode: (RawSpan, inout MutableSpan<Sample>) -> Void
  ) throws(WAVProblem) -> Int {
    let samples = available(at: frame, room: output.count) * format.channels
    var done = 0
    while done < samples {
      let wanted = min(samples - done, Self.blockSamples)
      let count = try fetch(sample: frame * Int64(format.channels) + Int64(done), count: wanted)
      var part = output._mutatingExtracting(done..<done + count)
      decode(fetched(count), &part)
      done += count
      if count < wanted { break }
    }
    return done / format.channels
  }

  private func available(at frame: Int64, room: Int) -> Int {
    guard frame >= 0, frame < frameCount else { return 0 }
    return Int(min(frameCount - frame, Int64(room / format.channels)))
  }

  /// Reads `count` samples into `raw` and returns how many there were.
  private func fetch(sample: Int64, count: Int) throws(WAVProblem) -> Int {
    let size = format.encoding.byteCount
    var bytes = unsafe MutableRawSpan(_unsafeStart: raw, byteCount: count * size)
    do {
      return try source.read(at: header.dataOffset + sample * Int64(size), into: &bytes) / size
    } catch { throw .file(error) }
  }

  /// The first `count` samples in `raw`.
  @_lifetime(borrow self)
  private func fetched(_ count: Int) -> RawSpan {
    let span = unsafe RawSpan(_unsafeStart: raw, byteCount: count * format.encoding.byteCount)
    return unsafe _overrideLifetime(span, borrowing: self)
  }
}

/// Decoding. The bytes hold exactly as many samples as the output.
extension RawSpan {
  fileprivate func decode(_ encoding: WAVFormat.Encoding, into output: inout MutableSpan<Float>) {
    switch encoding {
    case .u8: for i in output.indices { output[i] = Float(Int(u8(i)) - 128) * 0x1p-7 }
    case .s16: for i in output.indices { output[i] = Float(s16(i)) * 0x1p-15 }
    case .s24: for i in output.indices { output[i] = Float(s24(i)) * 0x1p-23 }
    case .s32: for i in output.indices { output[i] = Float(s32(i)) * 0x1p-31 }
    case .f32: for i in output.indices { output[i] = Float(bitPattern: UInt32(bitPattern: s32(i))) }
    case .f64: for i in output.indices { output[i] = Float(Double(bitPattern: u64(i))) }
    }
  }

  /// Integers only; floats use the other version.
  fileprivate func decode(_ encoding: WAVFormat.Encoding, into output: inout MutableSpan<Int16>) {
    switch encoding {
    case .u8: for i in output.indices { output[i] = (Int16(u8(i)) - 128) << 8 }
    case .s16: for i in output.indices { output[i] = s16(i) }
    case .s24: for i in output.indices { output[i] = Int16(clamping: (s24(i) + 0x80) >> 8) }
    case .s32: for i in output.indices { output[i] = Int16(clamping: (Int64(s32(i)) + 0x8000) >> 16) }
    case .f32, .f64: break
    }
  }
}

/// Little-endian samples by index.
extension RawSpan {
  @inline(__always) fileprivate func u8(_ index: Int) -> UInt8 {
    unsafe unsafeLoadUnaligned(fromByteOffset: index, as: UInt8.self)
  }

  @inline(__always) fileprivate func s16(_ index: Int) -> Int16 {
    unsafe Int16(littleEndian: unsafeLoadUnaligned(fromByteOffset: 2 * index, as: Int16.self))
  }

  @inline(__always) fileprivate func s24(_ index: Int) -> Int32 {
    let low = UInt32(u8(3 * index)) | UInt32(u8(3 * index + 1)) << 8
    return Int32(truncatingIfNeeded: Int8(bitPattern: u8(3 * index + 2))) << 16 | Int32(bitPattern: low)
  }

  @inline(__always) fileprivate func s32(_ index: Int) -> Int32 {
    unsafe Int32(littleEndian: unsafeLoadUnaligned(fromByteOffset: 4 * index, as: Int32.self))
  }

  @inline(__always) fileprivate func u64(_ index: Int) -> UInt64 {
    unsafe UInt64(littleEndian: unsafeLoadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
  }
}
