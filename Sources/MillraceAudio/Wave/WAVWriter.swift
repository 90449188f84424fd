internal import MillraceDSP

/// Writes a WAV file of 16-bit or float samples that is readable at any time.
///
/// Frames are written first and their count is updated afterwards, with ``refreshHeader()``: call it about once a second, and a
/// program killed in between leaves a file that plays up to the last refresh. Room for 64-bit sizes is reserved from the start, so
/// that a file above 4 GiB becomes RF64 (EBU Tech 3306) by changing the header, without a copy.
///
/// Accepts either sample type, whatever the file holds; floats become 16 bits by rounding and saturating. After a failed write (disk
/// full), what was written before stays readable, and a later write continues from there. Blocks the calling thread: not for the
/// voice lane. No allocation after `init`. One thread at a time.
@safe public struct WAVWriter: ~Copyable, @unchecked Sendable {
  /// The format of the file.
  public let format: WAVFormat
  /// Whole frames written so far.
  public private(set) var frameCount: Int64 = 0
  private let file: FileBytes
  private var header: WAVHeaderLayout
  /// False while the file still has its old content.
  private var hasBegun: Bool
  /// Frames stated by the header on disk.
  private var announced: Int64 = 0
  /// Samples being converted.
  private let shorts: UnsafeMutablePointer<Int16>
  private let floats: UnsafeMutablePointer<Float>
  private static let blockSamples = 4_096

  /// Creates a file, or truncates an existing one, and writes a header that states no frames.
  ///
  /// - Throws: ``WAVProblem`` for a format other than s16 and f32, or on a system error.
  public init(path: String, format: WAVFormat) throws(WAVProblem) {
    guard Self.writes(format) else { throw .notWritable(name: path, format: format) }
    let file: FileBytes
    do { file = try FileBytes(creating: path) } catch { throw .file(error) }
    try self.init(file: file, format: format, largest: WAVHeaderLayout.largestRIFF)
  }

  /// With `keepsContent` the file is unchanged until the first write or refresh. `largest` is the file size from which on it becomes
  /// RF64.
  init(file: FileBytes, format: WAVFormat, largest: Int64, keepsContent: Bool = false) throws(WAVProblem) {
    guard Self.writes(format) else { throw .notWritable(name: file.name, format: format) }
    var header = WAVHeaderLayout(format: format, largest: largest)
    if !keepsContent { try Self.begin(file, &header) }
    hasBegun = !keepsContent
    self.format = format
    self.file = file
    self.header = header
    unsafe shorts = .allocate(capacity: Self.blockSamples)
    unsafe floats = .allocate(capacity: Self.blockSamples)
    unsafe shorts.initialize(repeating: 0, count: Self.blockSamples)
    unsafe floats.initialize(repeating: 0, count: Self.blockSamples)
  }

  /// Truncates the file and writes a header that states no frames, if not done yet.
  private mutating func begin() throws(WAVProblem) {
    guard !hasBegun else { return }
    try Self.begin(file, &header)
    hasBegun = true
  }

  private static func begin(_ file: FileBytes, _ header: inout WAVHeaderLayout) throws(WAVProblem) {
    header.update(frameCount: 0)
    do throws(FileFault) {
      // A device has no content and cannot be truncated.
      if file.byteCount > 0 { try file.clear(from: 0, to: 0) }
      try unsafe file.write(header.bytes.span.bytes, at: 0)
    } catch { throw .file(error) }
  }

  deinit {
    // A writer destroyed without finish() still leaves a correct header; a failure can no longer be reported.
    if announced != frameCount {
      var header = header
      header.update(frameCount: frameCount)
      do { try unsafe file.write(header.bytes.span.bytes, at: 0) } catch {}
    }
    unsafe shorts.deallocate()
    unsafe floats.deallocate()
  }

  private static func writes(_ format: WAVFormat) -> Bool {
    (format.encoding == .s16 || format.encoding == .f32)
      && WAVFormat.channelCounts.contains(format.channels)
      && WAVFormat.sampleRates.contains(format.sampleRate)
  }

  /// Appends whole frames; samples of an incomplete last frame are ignored.
  public mutating func write(_ samples: Span<Int16>) throws(WAVProblem) {
    let whole = samples.extracting(first: samples.count / format.channels * format.channels)
    guard format.encoding == .f32 else { return try unsafe append(whole.bytes) }
    try unsafe append(whole, through: floats) { SampleConversion.convert($0, into: &$1) }
  }

  /// Appends whole frames; samples of an incomplete last frame are ignored.
  public mutating func write(_ samples: Span<Float>) throws(WAVProblem) {
    let whole = samples.extracting(first: samples.count / format.channels * format.channels)
    guard format.encoding == .s16 else { return try unsafe append(whole.bytes) }
    try unsafe append(whole, through: shorts) { SampleConversion.convert($0, into: &$1) }
  }

  /// Appends samples of the other type, converted one block at a time.
  private mutating func append<Given: BitwiseCopyable, Written: BitwiseCopyable>(
    _ samples: Span<Given>, through block: UnsafeMutablePointer<Written>,
    _ convert: (Span<Given>, inout MutableSpan<Written>) -> Void
  ) throws(WAVProblem) {
    let length = Self.blockSamples / format.channels * format.channels
    var done = 0
    while done < samples.count {
      let part = samples.extracting(done..<min(done + length, samples.count))
      var converted = unsafe MutableSpan(_unsafeStart: block, count: part.count)
      convert(part, &converted)
      try unsafe append(converted.span.bytes)
      done += part.count
    }
  }

  /// Appends silence without writing it: the file gets a hole that reads as zeros and takes no disk space.
  public mutating func writeSilence(frames: Int64) throws(WAVProblem) {
    guard frames > 0 else { return }
    try begin()
    let length = end + frames * Int64(format.frameByteCount)
    do { try file.clear(from: end, to: length) } catch { throw .file(error) }
    frameCount += frames
  }

  /// Writes the present length to the header, so that the file plays up to here whatever happens next.
  public mutating func refreshHeader() throws(WAVProblem) {
    try begin()
    if announced != frameCount { try writeHeader() }
  }

  /// Completes the header and closes the file.
  public consuming func finish() throws(WAVProblem) {
    try refreshHeader()
  }

  /// Offset after the last whole frame.
  private var end: Int64 { header.byteCount + frameCount * Int64(format.frameByteCount) }

  private mutating func append(_ bytes: RawSpan) throws(WAVProblem) {
    try begin()
    do { try file.write(bytes, at: end) } catch {
      // Whole frames that did reach the file count; the next write continues after them.
      let present = min(file.byteCount, end + Int64(bytes.byteCount))
      frameCount = max(frameCount, (present - header.byteCount) / Int64(format.frameByteCount))
      throw .file(error)
    }
    frameCount += Int64(bytes.byteCount / format.frameByteCount)
  }

  private mutating func writeHeader() throws(WAVProblem) {
    header.update(frameCount: frameCount)
    do { try unsafe file.write(header.bytes.span.bytes, at: 0) } catch { throw .file(error) }
    announced = frameCount
  }
}
