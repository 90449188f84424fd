internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import MillraceDSP

/// Why a text cannot be spoken, and what to do.
public struct SynthesisError: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
}

/// Speaks with espeak-ng, and encodes with FFmpeg's libraries. Takes tens of milliseconds: not for the network thread.
public enum SpeechSynthesizer {
  /// Why a double cannot speak on this machine, and the cure; nil when it can. Speaks a word to find out.
  public static var problem: String? {
    do {
      _ = try speak("yes", voice: "en", format: .mp3, rate: 24_000)
      return nil
    } catch {
      return error.description
    }
  }

  /// Why a double cannot speak with a voice, and the cure; nil when it can. Speaks a word to find out: tens of milliseconds, not for the
  /// network thread.
  /// - Parameter voice: the espeak-ng voice.
  static func problem(voice: String) -> String? {
    do throws(SynthesisError) {
      _ = try speak("yes", voice: voice, format: .pcm, rate: 16_000)
      return nil
    } catch {
      return error.description
    }
  }

  /// Speaks a text.
  /// - Parameters:
  ///   - text: the text.
  ///   - voice: the espeak-ng voice.
  ///   - format: the format of the audio.
  ///   - rate: the sample rate in Hz.
  public static func speak(
    _ text: String, voice: String, format: SpeechFormat, rate: Int
  ) throws(SynthesisError) -> SpokenReply {
    let (spoken, spokenRate) = try samples(of: text, voice)
    let sound = try resampled(spoken, from: spokenRate, to: rate)
    let time = sound.count * 1_000 / rate
    switch format {
    case .pcm:
      return SpokenReply(
        pieces: [sound.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }],
        milliseconds: time)
    case .mp3:
      let packets = try AudioEncoding.packets(sound, codec: "libmp3lame", rate: rate, bitRate: 48_000)
      return SpokenReply(pieces: [packets.flatMap { $0 }], milliseconds: time)
    case .oggOpus:
      let file = OggOpus.file(OggOpus.head(rate: rate), try opus(sound, rate), frame: 960)
      return SpokenReply(pieces: [file], milliseconds: time)
    case .opusPackets(let hasHead):
      let head = hasHead ? [OggOpus.head(rate: rate)] : []
      return SpokenReply(pieces: head + (try opus(sound, rate)), milliseconds: time, isInPackets: true)
    }
  }

  private static func opus(_ sound: [Int16], _ rate: Int) throws(SynthesisError) -> [[UInt8]] {
    try AudioEncoding.packets(sound, codec: "libopus", rate: rate, bitRate: 32_000)
  }

  private static func resampled(
    _ samples: [Int16], from: Int, to: Int
  ) throws(SynthesisError) -> [Int16] {
    guard from != to else { return samples }
    do {
      var resampler = try Resampler(from: from, to: to)
      var output = [Int16](
        repeating: 0, count: resampler.maximumOutputCount(forInput: samples.count) + to / 10)
      var target = output.mutableSpan
      let progress = resampler.process(samples.span, into: &target)
      return Array(output.prefix(progress.produced))
    } catch {
      throw SynthesisError(description: "\(error)")
    }
  }

  // MARK: espeak-ng

  /// Speaks a text, and returns 16-bit samples and their rate.
  private static func samples(of text: String, _ voice: String) throws(SynthesisError) -> ([Int16], Int) {
    var template = Array("/tmp/millrace-voice-XXXXXX".utf8CString)
    let descriptor = unsafe mkstemp(&template)
    guard descriptor >= 0 else { throw SynthesisError(description: "cannot create a file in /tmp") }
    defer {
      close(descriptor)
      unsafe _ = template.withUnsafeBufferPointer { unsafe unlink($0.baseAddress!) }
    }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // After "--" nothing is taken for an option, whatever the text is.
    try run(espeak: voice, ["-w", path, "--", text])
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe read(descriptor, &buffer, buffer.count)
      guard count > 0 else { break }
      bytes += buffer.prefix(count)
    }
    return try wave(bytes)
  }

  private static func run(espeak voice: String, _ arguments: [String]) throws(SynthesisError) {
    let words = unsafe (["espeak-ng", "-v", voice] + arguments).map { unsafe strdup($0) } + [nil]
    // A service key in the environment of this program is not passed on.
    let variables = unsafe InheritedEnvironment.with([]).map { unsafe strdup($0) } + [nil]
    defer {
      for index in unsafe words.indices { unsafe free(words[index]) }
      for index in unsafe variables.indices { unsafe free(variables[index]) }
    }
    // Its error output would appear in the middle of a screen with a dialogue.
    var files = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&files)
    defer { unsafe posix_spawn_file_actions_destroy(&files) }
    unsafe posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0)
    _ = unsafe millrace_spawn_close_from(&files, 3)
    var id = pid_t()
    guard unsafe posix_spawnp(&id, "espeak-ng", &files, nil, words, variables) == 0 else {
      throw SynthesisError(
        description: "cannot start espeak-ng, which speaks the replies; install the package espeak-ng")
    }
    var status: Int32 = 0
    while unsafe waitpid(id, &status, 0) < 0 && errno == EINTR {}
    guard status == 0 else {
      // The text is never a reason to fail: it is the voice.
      let end = status & 0x7F == 0 ? "status \(status >> 8)" : "signal \(status & 0x7F)"
      throw SynthesisError(
        description:
          "espeak-ng cannot speak with the voice \"\(voice)\" (\(end)); espeak-ng --voices lists them")
    }
  }

  /// A WAV file of 16-bit mono. espeak-ng writes sizes before it knows them, so the actual length counts.
  private static func wave(_ bytes: [UInt8]) throws(SynthesisError) -> ([Int16], Int) {
    func number(_ place: Int, _ count: Int) -> Int {
      (0..<count).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) }
    }
    guard bytes.count > 44, bytes.starts(with: Array("RIFF".utf8)) else {
      throw SynthesisError(description: "espeak-ng did not write a WAV file")
    }
    let rate = number(24, 4)
    guard number(22, 2) == 1, number(34, 2) == 16, Resampler.rates.contains(rate) else {
      throw SynthesisError(description: "espeak-ng did not write 16-bit mono")
    }
    let samples = stride(from: 44, to: bytes.count - 1, by: 2).map {
      Int16(truncatingIfNeeded: number($0, 2))
    }
    return (samples, rate)
  }
}
