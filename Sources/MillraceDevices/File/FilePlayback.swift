internal import CMillraceSys
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// A WAV file as a loudspeaker: a thread writes in real time what a device would have played, silence included. The header is updated
/// every second, so the file is playable even if the program is killed. The file is claimed for writing, so it cannot be in use elsewhere
/// in this process.
final class FilePlayback: AudioDevice, @unchecked Sendable {
  /// Audio written at a time, in nanoseconds.
  private let interval: Nanoseconds
  private let settings: DeviceSettings
  private let line: PlaybackLine
  private let thread = DeviceThread()
  private var claim: FileLock?

  init(_ settings: DeviceSettings, _ line: PlaybackLine) throws(NodeProblem) {
    try FileCheck.writing(settings.path)
    guard FileCheck.isPlain(settings.path) else {
      throw NodeProblem(
        "\"\(settings.path)\" is a pipe or a device, not a file", parameter: "path",
        cure: "name a regular file, or use process.pipe to feed a program")
    }
    claim = try DeviceShutdown.claim(settings.path, for: .writing)
    self.settings = settings
    self.line = line
    interval = settings.interval
  }

  func start() throws(NodeProblem) {
    let writer: WAVWriter
    do throws(WAVProblem) {
      writer = try WAVWriter(
        path: settings.path, format: WAVFormat(sampleRate: line.rate, channels: line.channels, encoding: .f32)
      )
    } catch {
      throw NodeProblem("\(error)", parameter: "path")
    }
    let parcel = Parcel(writer)
    try thread.start("millrace-speaker") { [self] in
      if let writer = parcel.take() { run(writer) }
    }
  }

  func stop() {
    thread.stop()
    claim = nil
  }

  var file: String? { settings.path }

  private func run(_ writer: consuming WAVWriter) {
    let frames = max(1, Int(interval) * line.rate / 1_000_000_000)
    let rate = Double(line.rate) * (1 + settings.skew * 1e-6) / 1e9
    var reader = TimelineReader(line, epoch: 1)
    var samples = [Float](repeating: 0, count: frames * line.channels)
    let pace = DevicePacer(rate: line.rate, skew: settings.skew)
    let start = millrace_monotonic_ns()
    line.publish(DeviceClock(epoch: 1, position: 0, time: start, rate: rate), isFirst: true, at: start)
    var problem: NodeProblem?
    var announced: Int64 = 0
    while !thread.isOver, problem == nil {
      pace.wait(for: reader.position + Int64(frames))
      unsafe samples.withUnsafeMutableBufferPointer { unsafe reader.read(frames, into: $0.baseAddress!) }
      do throws(WAVProblem) {
        try writer.write(samples.span)
        if reader.position - announced >= Int64(line.rate) {
          try writer.refreshHeader()
          announced = reader.position
        }
      } catch {
        problem = NodeProblem("\(error)")
      }
    }
    // A write error, such as a full disk, counts as a lost device.
    if problem != nil { line.lose(at: millrace_monotonic_ns()) }
    do throws(WAVProblem) { try writer.finish() } catch { line.lose(at: millrace_monotonic_ns()) }
  }
}
