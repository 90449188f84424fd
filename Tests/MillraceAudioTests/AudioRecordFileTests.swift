import Glibc
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceAudio

@Suite("audio.record: files")
struct AudioRecordFileTests {
  private let folder = TemporaryFolder()

  /// Audio that survives a codec: one tone per channel at different pitches, with a recognisable onset.
  private func tones(_ channels: Int, rate: Int, frames: Int) -> [Int16] {
    var samples: [Int16] = []
    for frame in 0..<frames {
      for channel in 0..<channels {
        let tone = sin(2 * .pi * Double(250 + 110 * channel) * Double(frame) / Double(rate))
        samples.append(Int16(8_000 * tone))
      }
    }
    return samples
  }

  /// All output of an audio file, through `audio.read`.
  private func play(_ path: String) throws -> (shape: Format, samples: [Int16], events: [String]) {
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    let format = bench.shape().format
    try bench.finish()
    let result = (format, bench.int16(), bench.events().map(\.name))
    #expect(bench.close() == [])
    return result
  }

  private func record(
    _ samples: [Int16], _ path: String, rate: Int, _ parameters: [String: ParameterValue] = [:]
  ) throws {
    let bench = try NodeBench(
      AudioRecord.self, parameters.merging(["path": .string(path)]) { first, _ in first },
      inputs: ["in1": shape(rate), "in2": shape(rate, channels: 2)])
    bench.push(stride(from: 0, to: samples.count, by: 3).map { samples[$0] }, to: "in1")
    bench.push(samples.enumerated().filter { $0.offset % 3 != 0 }.map(\.element), to: "in2")
    try bench.finish()
    #expect(bench.events().last?.name == "completed")
    #expect(bench.close() == [])
  }

  @Test("FLAC keeps every sample of every channel")
  func flac() throws {
    let samples = tones(3, rate: 16_000, frames: 20_000)
    let path = folder.file("call.flac")
    try record(samples, path, rate: 16_000)
    let played = try play(path)
    #expect(played.shape == .pcm(rate: 16_000, channels: 3, sample: .s16))
    #expect(played.samples == samples)
    #expect(played.events == [])
  }

  @Test(
    "Opus, AAC and MP4 keep the channels apart and aligned",
    arguments: [
      ("call.opus", 0), ("call.ogg", 0), ("call.aac", 1_024), ("call.m4a", 1_024), ("call.mp4", 1_024),
    ])
  func lossy(name: String, delay: Int) throws {
    let (rate, frames) = (48_000, 48_000)
    let samples = tones(3, rate: rate, frames: frames)
    let path = folder.file(name)
    try record(samples, path, rate: rate, ["bitrate": 240_000])
    let played = try play(path)
    #expect(played.shape == .pcm(rate: rate, channels: 3, sample: .s16))
    #expect(played.events == [])
    let extra = played.samples.count / 3 - frames
    // Neither ADTS nor fragments state the encoder's delay of a block and the padding of the last one.
    #expect(delay == 0 ? extra == 0 : (1_024..<3_072).contains(extra), "\(extra) samples more")
    for channel in 0..<3 {
      var (error, power) = (0.0, 0.0)
      for frame in 4_000..<40_000 {
        let was = Double(samples[3 * frame + channel])
        let change = Double(played.samples[3 * (frame + delay) + channel]) - was
        error += change * change
        power += was * was
      }
      // A swapped channel, or one off by a sample, would differ by at least half.
      #expect(error < power * 0.02, "channel \(channel): \(error / power)")
    }
  }

  @Test("the format need not match the extension")
  func format() throws {
    let samples = tones(3, rate: 16_000, frames: 500)
    let path = folder.file("call.wav")
    try record(samples, path, rate: 16_000, ["format": "flac"])
    #expect(contents(path).starts(with: "fLaC".utf8))
  }

  @Test(
    "a killed process leaves a file that plays, except for the last second or two",
    arguments: RecordingFormat.allCases)
  func killed(format: RecordingFormat) async throws {
    let path = folder.file("killed.\(format == .m4a ? "mp4" : format.rawValue)")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let bench = try NodeBench(
        AudioRecord.self, ["path": .string(path)], inputs: ["in1": shape(16_000), "in2": shape(16_000)])
      for second in 0..<5 {
        bench.push(Fixture.noise16(seed: 1, count: 16_000), to: "in1")
        bench.push(Fixture.noise16(seed: 2, count: 16_000), to: "in2")
        try bench.advance(to: Nanoseconds(second + 1) * 1_000_000_000)
      }
      kill(getpid(), SIGKILL)
    }
    let played = try play(path)
    let rate = try #require(played.shape.rate)
    // Opus is always decoded at its own rate.
    #expect(rate == (format == .opus ? 48_000 : 16_000) && played.shape.channels == 2)
    let seconds = Double(played.samples.count / 2) / Double(rate)
    #expect(seconds >= 3, "\(seconds) s of 5")
    #expect(Fixture.rms(played.samples) > 0.01)
  }

  @Test(
    "a full disk is a fault with the cure, and what was written before plays", arguments: ["wav", "flac"])
  func fullDisk(ending: String) throws {
    let path = folder.file("full.\(ending)")
    let bench = try NodeBench(
      OnFullDisk<AudioRecord>.self, ["path": .string(path)], inputs: ["in1": shape(16_000)])
    let fault = #expect(throws: BenchFault.self) {
      for second in 0..<4 {
        bench.push(Fixture.noise16(seed: 3, count: 16_000))
        try bench.advance(to: Nanoseconds(second + 1) * 1_000_000_000)
      }
    }
    #expect(fault?.fault.reason == .system && fault?.fault.code == ENOSPC)
    let milliseconds = (fault?.fault.detail ?? 0) / 16
    #expect(
      fault?.text
        == "writing \"\(path)\" failed: No space left on device (errno 28); the \(milliseconds) ms before it are readable; "
        + "free disk space")
    if ending == "wav" { #expect(try readWAV(path).count == (fullDiskRoom - 80) / 2) }
    // A restart makes the new node before the failed one is destroyed: the file must be unlocked by then.
    let again = try NodeBench(AudioRecord.self, ["path": .string(path)], inputs: ["in1": shape(16_000)])
    #expect(again.close() == [])
  }

  @Test("the system's file size limit is a fault with a message")
  func limited() async throws {
    await #expect(processExitsWith: .exitCode(42)) {
      let folder = TemporaryFolder()
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit(rlim_cur: 20_000, rlim_max: 20_000)
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      let bench = try NodeBench(
        AudioRecord.self, ["path": .string(folder.file("long.wav"))], inputs: ["in1": shape(16_000)])
      bench.push(Fixture.noise16(seed: 3, count: 16_000))
      var text = ""
      do { try bench.run() } catch { text = "\(error)" }
      exit(
        text.hasSuffix(
          "File too large (errno 27); the 622 ms before it are readable; the file size limit is reached (ulimit -f, or the file system's)"
        )
          ? 42 : 1)
    }
  }

  @Test("an impossible recording is refused with the cure, before anything is touched")
  func refused() throws {
    func text(
      _ name: String, _ parameters: [String: ParameterValue] = [:], _ inputs: [OutputShape] = [shape()]
    ) -> String? {
      refusal(
        AudioRecord.self,
        parameters.merging(["path": .string(name.isEmpty ? folder.path : folder.file(name))]) { first, _ in
          first
        },
        inputs: Dictionary(uniqueKeysWithValues: inputs.enumerated().map { ("in\($0 + 1)", $1) }))
    }
    let path = folder.path
    #expect(text("")?.contains("\"path\": \"\(path)\" is a directory; name a file in it") == true)
    #expect(
      text("no/a.wav")
        == "\"path\": cannot write \"\(path)/no/a.wav\": the directory \"\(path)/no\" does not exist; create it: mkdir -p \"\(path)/no\""
    )
    #expect(
      text("a.mp3")
        == "\"path\": \"\(path)/a.mp3\" has no known audio file extension; use .wav, .flac, .opus, .aac or .m4a, or "
        + "set \"format\"")
    mkfifo(folder.file("pipe.wav"), 0o600)
    #expect(
      text("pipe.wav")
        == "\"path\": \"\(path)/pipe.wav\" is a pipe, but a recording is completed by rewriting its beginning; write "
        + "to a file, or send the audio to process.pipe")
    #expect(
      text("a.wav", [:], [shape(16_000), shape(48_000)])
        == "in2 carries s16 48000 Hz 1 ch but in1 carries s16 16000 Hz 1 ch; put audio.resample (rate 16000) before in2"
    )
    #expect(
      text("a.opus", [:], [shape(44_100)])
        == "Ogg Opus does not support 44100 Hz; put audio.resample (rate 48000) before each input")
    let stereo = shape(channels: 2)
    #expect(
      text("a.m4a", [:], [stereo, stereo, stereo])
        == "the file would have 6 channels; MP4 supports 5; put audio.convert (channels 1) before stereo inputs, or set "
        + "\"layout\" to \"mix\"")
    #expect(
      text("a.flac", ["bitrate": 64_000])
        == "\"bitrate\": FLAC is lossless and has no bit rate; remove it")
    #expect(
      text("a.opus", ["sample": "f32"])
        == "\"sample\": Ogg Opus has no choice of sample types, only WAV has; remove it")
    #expect(
      text("a.wav", [:], [shape(channels: 3)])
        == "input \"in1\" of audio.record accepts s16/f32 8000 to 192000 Hz 1 to 2 ch, not s16 16000 Hz 3 ch"
    )
  }

  @Test(
    "a file that another node reads or writes is not overwritten, and a graph that fails to start leaves it intact"
  )
  func claimed() throws {
    let path = folder.file("kept.wav")
    try writeWAV([1, 2, 3], rate: 16_000, to: path)
    let reader = try NodeBench(AudioRead.self, ["path": .string(path)])
    #expect(
      refusal(AudioRecord.self, ["path": .string(path)], inputs: ["in1": shape()])
        == "\"\(path)\" is being read or written by another node or program; write to another file; "
        + "several instances need one each (put {instance} in the name)")
    #expect(reader.close() == [])
    let idle = try NodeBench(AudioRecord.self, ["path": .string(path)], inputs: ["in1": shape()])
    #expect(idle.close() == [])
    #expect(try readWAV(path) == [1, 2, 3])
  }
}
