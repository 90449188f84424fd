internal import CMillraceSys
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// A WAV file as a microphone: a thread reads it block by block in real time. The device ends with the file. The file is claimed for
/// reading, so no node of this process can write to it meanwhile.
final class FileCapture: AudioDevice, @unchecked Sendable {
  private let settings: DeviceSettings
  private let line: CaptureLine
  private let shape: CaptureFormat
  private let thread = DeviceThread()
  private var claim: FileLock?

  init(_ settings: DeviceSettings, _ line: CaptureLine, _ shape: CaptureFormat) throws(NodeProblem) {
    try FileCheck.reading(settings.path)
    claim = try DeviceShutdown.claim(settings.path, for: .reading)
    self.settings = settings
    self.line = line
    self.shape = shape
  }

  func start() throws(NodeProblem) {
    let reader: WAVReader
    do throws(WAVProblem) {
      reader = try WAVReader(path: settings.path)
    } catch {
      throw NodeProblem("\(error)", parameter: "path")
    }
    guard reader.format.sampleRate == shape.rate, reader.format.channels == shape.channels else {
      throw NodeProblem(
        "\"\(settings.path)\" is \(reader.format.sampleRate) Hz with \(reader.format.channels) channels, not \(shape.rate) Hz with \(shape.channels)",
        parameter: "path", cure: "set \"rate\" and \"channels\" to match the file")
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

  var file: String? { settings.path }

  private func run(_ reader: consuming WAVReader) {
    let pace = DevicePacer(rate: shape.rate, skew: settings.skew)
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

  /// Reads the next block; 0 at the end. A read error counts as a lost device.
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
