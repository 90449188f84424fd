internal import CMillraceSys
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// A WAV file as a microphone: a thread with a clock of its own reads it block by block. The device ends with the file, which is
/// claimed meanwhile: nobody writes it.
final class FileCapture: AudioDevice, @unchecked Sendable {
  private let terms: DeviceTerms
  private let line: CaptureLine
  private let shape: CaptureShape
  private let thread = DeviceThread()
  private var claim: FileLock?

  init(_ terms: DeviceTerms, _ line: CaptureLine, _ shape: CaptureShape) throws(NodeProblem) {
    try FileCheck.reading(terms.path)
    claim = try HangUps.claim(terms.path, for: .reading)
    self.terms = terms
    self.line = line
    self.shape = shape
  }

  func start() throws(NodeProblem) {
    let reader: WAVReader
    do throws(WAVProblem) {
      reader = try WAVReader(path: terms.path)
    } catch {
      throw NodeProblem("\(error)", parameter: "path")
    }
    guard reader.format.sampleRate == shape.rate, reader.format.channels == shape.channels else {
      throw NodeProblem(
        "\"\(terms.path)\" has \(reader.format.sampleRate) Hz and \(reader.format.channels) channels, not \(shape.rate) Hz and \(shape.channels)",
        parameter: "path", cure: "set \"rate\" and \"channels\" to those of the file")
    }
    let parcel = Parcel(reader)
    try thread.start("millrace-mic") { [self] in
      if let reader = parcel.take() { run(reader) }
    }
  }

  func stop() {
    thread.stop()
    claim = nil
  }

  private func run(_ reader: consuming WAVReader) {
    let pace = OwnPace(rate: shape.rate, skew: terms.skew)
    let frames = line.frames
    var bytes = [UInt8](repeating: 0, count: frames * line.frameBytes)
    var position: Int64 = 0
    while !thread.isOver {
      let count = read(&reader, at: position, into: &bytes)
      guard count > 0 else { break }
      position += Int64(count)
      pace.wait(for: position)
      line.arrive(count, at: millrace_monotonic_ns())
      unsafe bytes.withUnsafeBytes { unsafe line.take($0.baseAddress, frames: count) }
    }
    line.end()
  }

  /// Frames read; 0 at the end. A file that cannot be read on is a microphone that broke.
  private func read(_ reader: inout WAVReader, at position: Int64, into bytes: inout [UInt8]) -> Int {
    unsafe bytes.withUnsafeMutableBytes { raw in
      do throws(WAVProblem) {
        switch shape.sample {
        case .s16:
          var span = unsafe MutableSpan(_unsafeElements: raw.bindMemory(to: Int16.self))
          return try reader.read(at: position, into: &span)
        case .f32:
          var span = unsafe MutableSpan(_unsafeElements: raw.bindMemory(to: Float.self))
          return try reader.read(at: position, into: &span)
        }
      } catch {
        line.lose(at: millrace_monotonic_ns())
        return 0
      }
    }
  }
}
