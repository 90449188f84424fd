internal import MillraceCore

/// Audio from a WAV file, without any library. No allocation after `init`.
final class WAVSource: AudioSource {
  private var reader: WAVReader
  private var position: Int64 = 0

  init(_ reader: consuming WAVReader, sample: SampleType) {
    let header = reader.header
    var length = header.frameCount
    for case .cutShort(_, let declared, _) in header.repairs {
      length = declared / Int64(header.format.frameByteCount)
    }
    self.reader = reader
    super.init(
      AudioInfo(rate: header.format.sampleRate, channels: header.format.channels, length: length),
      sample: sample)
  }

  override func read(into bytes: UnsafeMutableRawBufferPointer) throws(NodeFault) -> Int {
    do throws(WAVProblem) {
      let count: Int
      switch sample {
      case .s16:
        var target = unsafe MutableSpan(_unsafeElements: bytes.bindMemory(to: Int16.self))
        count = try reader.read(at: position, into: &target)
      case .f32:
        var target = unsafe MutableSpan(_unsafeElements: bytes.bindMemory(to: Float.self))
        count = try reader.read(at: position, into: &target)
      }
      position += Int64(count)
      return count
    } catch {
      guard case .file(let fault) = error else { throw NodeFault(.badInput, detail: position) }
      throw NodeFault(.system, code: fault.errorNumber, detail: position)
    }
  }

  override func seek(to position: Int64) throws(NodeFault) { self.position = position }
}
