internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceCore

/// The output FFmpeg's libraries write to: our own file, so that we control its lock, system calls and errors.
@safe
final class MediaOutput {
  /// The value for `AVFormatContext.pb`. Owned by this object.
  let context: UnsafeMutablePointer<AVIOContext>
  /// Error of the first failed write; 0: none.
  private(set) var errorNumber: Int32 = 0
  private let file: FileBytes
  private var offset: Int64 = 0
  private static let bufferBytes = 32_768
  /// The library's flags for querying the size, and for forcing a seek (avio.h).
  private static let asksSize: Int32 = 0x10000
  private static let forces: Int32 = 0x20000

  init(_ file: FileBytes) {
    self.file = file
    guard let buffer = unsafe av_malloc(Self.bufferBytes),
      let made = unsafe avio_alloc_context(
        buffer.assumingMemoryBound(to: UInt8.self), Int32(Self.bufferBytes), 1, nil, nil,
        { unsafe MediaOutput.write($0, $1, $2) }, { unsafe MediaOutput.seek($0, $1, $2) })
    else { fatalError("out of memory for an encoder") }
    unsafe context = made
    unsafe made.pointee.opaque = unsafe Unmanaged.passUnretained(self).toOpaque()
  }

  /// Bytes of the file.
  var byteCount: Int64 { file.byteCount }

  deinit {
    unsafe av_freep(&context.pointee.buffer)
    var context: UnsafeMutablePointer<AVIOContext>? = unsafe context
    unsafe avio_context_free(&context)
  }

  /// Discards the content of the file.
  func empty() throws(NodeFault) {
    guard file.byteCount > 0 else { return }
    do { try file.clear(from: 0, to: 0) } catch { throw NodeFault(.system, code: error.errorNumber) }
  }

  private static func write(
    _ opaque: UnsafeMutableRawPointer?, _ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int32
  ) -> Int32 {
    guard let opaque = unsafe opaque, let bytes = unsafe bytes else { return millrace_averror(EINVAL) }
    return unsafe Unmanaged<MediaOutput>.fromOpaque(opaque).takeUnretainedValue().write(
      UnsafeRawBufferPointer(start: bytes, count: Int(count)))
  }

  private func write(_ bytes: UnsafeRawBufferPointer) -> Int32 {
    do {
      try unsafe file.write(RawSpan(_unsafeBytes: bytes), at: offset)
    } catch {
      if errorNumber == 0 { errorNumber = error.errorNumber }
      return millrace_averror(error.errorNumber)
    }
    offset += Int64(bytes.count)
    return Int32(bytes.count)
  }

  private static func seek(_ opaque: UnsafeMutableRawPointer?, _ target: Int64, _ whence: Int32) -> Int64 {
    guard let opaque = unsafe opaque else { return Int64(millrace_averror(EINVAL)) }
    let output = unsafe Unmanaged<MediaOutput>.fromOpaque(opaque).takeUnretainedValue()
    switch whence & ~forces {
    case asksSize: return output.file.byteCount
    case SEEK_SET: output.offset = target
    case SEEK_CUR: output.offset += target
    case SEEK_END: output.offset = output.file.byteCount + target
    default: return Int64(millrace_averror(EINVAL))
    }
    return output.offset
  }
}
