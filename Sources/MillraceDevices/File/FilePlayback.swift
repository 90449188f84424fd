internal import CMillraceSys
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// A WAV file as a loudspeaker: a thread with a clock of its own writes what a device would have played, silence included. The header
/// is kept right every second, so that a killed program leaves a file that plays. The file is claimed: what others read or write is
/// not overwritten.
final class FilePlayback: AudioDevice, @unchecked Sendable {
  /// Nanoseconds of sound taken at a time.
  private let interval: Nanoseconds
  private let terms: DeviceTerms
  private let line: PlaybackLine
  private let thread = DeviceThread()
  private var claim: FileLock?

  init(_ terms: DeviceTerms, _ line: PlaybackLine) throws(NodeProblem) {
    try FileCheck.writing(terms.path)
    guard FileCheck.isPlain(terms.path) else {
      throw NodeProblem(
        "\"\(terms.path)\" is a pipe or a device, not a file", parameter: "path",
        cure: "name a file, or give the sound to a program with process.pipe")
    }
    claim = try HangUps.claim(terms.path, for: .writing)
    self.terms = terms
    self.line = line
    interval = terms.interval
  }

  func start() throws(NodeProblem) {
    let writer: WAVWriter
    do throws(WAVProblem) {
      writer = try WAVWriter(
        path: terms.path, format: WAVFormat(sampleRate: line.rate, channels: line.channels, encoding: .f32))
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

  private func run(_ writer: consuming WAVWriter) {
    let frames = max(1, Int(interval) * line.rate / 1_000_000_000)
    let rate = Double(line.rate) * (1 + terms.skew * 1e-6) / 1e9
    var reader = TimelineReader(line, epoch: 1)
    var samples = [Float](repeating: 0, count: frames * line.channels)
    let pace = OwnPace(rate: line.rate, skew: terms.skew)
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
    // A disk that is full is a loudspeaker that broke.
    if problem != nil { line.lose(at: millrace_monotonic_ns()) }
    do throws(WAVProblem) { try writer.finish() } catch { line.lose(at: millrace_monotonic_ns()) }
  }
}
