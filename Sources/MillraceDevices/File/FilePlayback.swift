internal import CMillraceSys
internal import MillraceAudio
internal import MillraceCore
internal import Synchronization

/// A WAV file as a loudspeaker: a thread with a clock of its own writes what a device would have played, silence included.
final class FilePlayback: AudioDevice, @unchecked Sendable {
  /// Nanoseconds of sound taken at a time.
  private let interval: Nanoseconds
  private let terms: DeviceTerms
  private let line: PlaybackLine
  private let isStopping = Atomic<Bool>(false)
  private let ended = Answer<Bool>()

  init(_ terms: DeviceTerms, _ line: PlaybackLine) throws(NodeProblem) {
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
    let refusal = OwnThread.start("millrace-speaker") { [self] in
      SoundThread.hurry()
      if let writer = parcel.take() { run(writer) }
      ended.give(true)
    }
    guard refusal == 0 else {
      throw NodeProblem("the system has no thread left", cure: "raise the limit of processes (ulimit -u)")
    }
  }

  func stop() {
    isStopping.store(true, ordering: .releasing)
    _ = ended.wait(3_000_000_000)
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
    while !isStopping.load(ordering: .acquiring), problem == nil {
      pace.wait(for: reader.position + Int64(frames))
      unsafe samples.withUnsafeMutableBufferPointer { unsafe reader.read(frames, into: $0.baseAddress!) }
      do throws(WAVProblem) { try writer.write(samples.span) } catch {
        problem = NodeProblem("\(error)")
      }
    }
    // A disk that is full is a loudspeaker that broke.
    if problem != nil { line.lose(at: millrace_monotonic_ns()) }
    do throws(WAVProblem) { try writer.finish() } catch { line.lose(at: millrace_monotonic_ns()) }
  }
}
