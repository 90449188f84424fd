public import MillraceCore
internal import MillraceDSP
internal import MillraceFiles

/// `audio.fileMix`: mixes an audio file into what a bot or a caller sends.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels: the uplink, which sets the pace. Out `out`: the same packets with the file
///   added, times `sendVolume`, limited to full scale; untouched packets while nothing plays. Out `playback`: the file alone, times
///   `playbackVolume`, at the same positions, for the loudspeaker; silence while nothing plays.
/// - The file may be anything `audio.read` reads. A thread of the node decodes it, converts it to the input's rate and channels and
///   runs slightly more than a second ahead; on a virtual clock the node does this itself, so that every run is the same.
/// - `path` may be set while the graph runs: the current file ends at once and the new one begins when it is open, about 20 ms later;
///   "" stops. A relative path is then relative to the program's working directory.
/// - `loops` repeats follow the first play; negative: endless. An update restarts the count, with the current play as the first.
/// - Changes of `sendVolume` and `playbackVolume` take 20 ms, pausing takes 5; resuming continues with the next sample.
/// - A file that cannot be read or breaks off posts event `failed`; the uplink continues. If the decoder is late, silence is inserted
///   and event `underrun` posted; nothing of the file is skipped. The same happens in a graph that runs faster than its clock.
/// - NaN and infinities in the input become silence; magnitudes above +120 dBFS are clamped.
/// - No latency. Calls neither allocate, lock nor make system calls, except on a virtual clock. Memory: 1.3 s of audio in floats.
@safe
public struct AudioFileMix: ~Copyable, Node {
  enum Event: Int {
    case began, completed, stopped, replaced, underrun, failed
  }

  /// Indices of the live parameters in the contract.
  private static let path = contract.parameterIndex("path")
  private static let loops = contract.parameterIndex("loops")
  private static let sendVolume = contract.parameterIndex("sendVolume")
  private static let playbackVolume = contract.parameterIndex("playbackVolume")
  private static let paused = contract.parameterIndex("paused")

  /// Milliseconds a change of volume takes, and a pause.
  private static let rampMilliseconds = 20.0
  private static let pauseMilliseconds = 5.0
  /// The second output.
  private static let playbackPort = 1

  private let rate: Int
  private let channels: Int
  private let sample: SampleType
  private let longest: Int
  private var music: FilePlayer
  private var send: GainRamp
  private var playback: GainRamp
  /// Fades out and back in around a pause.
  private var pause: GainRamp
  private var isPaused: Bool
  /// Frames of the file still emitted while it fades for a pause.
  private var fading = 0
  /// Frames currently missing from the feed, and the number of underruns.
  private var missing = 0
  private var underruns = 0
  /// One packet's worth of the file, and of the mixed output.
  private let file: UnsafeMutableBufferPointer<Float>
  private let sum: UnsafeMutableBufferPointer<Float>

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat(),
      let longest = setup.inputs[0].shape?.frames
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    let values = setup.parameters
    var music = FilePlayer(
      frames: AudioLimits.frames(milliseconds: FeedQueues.chunkMilliseconds, rate: rate), channels: channels,
      rate: rate, loops: values.integer("loops"))
    if !values.string("path").isEmpty { music.play(values.string("path")) }
    guard music.start(isVirtual: setup.isVirtual) else {
      throw NodeProblem("cannot start a thread", cure: "raise the limit on processes (ulimit -u)")
    }
    self.music = consume music
    self.rate = rate
    self.channels = channels
    self.sample = sample
    self.longest = longest
    send = GainRamp(gain: values.number("sendVolume"))
    playback = GainRamp(gain: values.number("playbackVolume"))
    isPaused = values.bool("paused")
    pause = GainRamp(gain: isPaused ? 0 : 1)
    unsafe file = .allocate(capacity: longest * channels)
    unsafe sum = .allocate(capacity: longest * channels)
    unsafe file.initialize(repeating: 0)
    unsafe sum.initialize(repeating: 0)
  }

  deinit {
    unsafe file.deallocate()
    unsafe sum.deallocate()
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let bytes = Int(packet.byteCount)
    let frames = bytes > 0 ? bytes / (channels * sample.byteCount) : min(packet.duration, longest)
    let sounding = fill(frames, &ports)
    if ports.isLinked(output: Self.playbackPort) {
      try emitPlayback(like: packet, frames, &ports)
    }
    guard sounding > 0, bytes > 0 else {
      try ports.emitSanitized(packet, sample)
      return .done
    }
    var own = try ports.makeWritable(packet)
    add(to: &own, frames)
    ports.emit(own)
    return .done
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let parameter, let value) = message else { return }
    switch parameter {
    case Self.path:
      guard case .string(let path) = value else { return }
      play(path, &ports)
    case Self.loops: music.loops = Int(value.asNumber)
    case Self.sendVolume:
      send.ramp(to: value.asNumber, milliseconds: Self.rampMilliseconds, sampleRate: rate)
    case Self.playbackVolume:
      playback.ramp(to: value.asNumber, milliseconds: Self.rampMilliseconds, sampleRate: rate)
    case Self.paused: setPaused(value.asNumber != 0)
    default: break
    }
  }

  private mutating func play(_ path: consuming String, _ ports: inout Ports) {
    let (wasPlaying, frames) = (music.isPlaying, music.frames)
    postUnderrun(&ports)
    if path.isEmpty { music.stop() } else { music.play(path) }
    guard wasPlaying else { return }
    ports.post((path.isEmpty ? Event.stopped : .replaced).rawValue) { $0.field("samples", frames) }
  }

  private mutating func setPaused(_ isNew: Bool) {
    guard isNew != isPaused else { return }
    isPaused = isNew
    let frames = AudioLimits.frames(milliseconds: Self.pauseMilliseconds, rate: rate)
    pause.ramp(to: isNew ? 0 : 1, frames: frames)
    fading = isNew ? frames : 0
  }

  // MARK: The file

  /// Takes the file's next frames, padded with silence, and returns how many there were.
  private mutating func fill(_ frames: Int, _ ports: inout Ports) -> Int {
    music.prepare()
    var done = 0
    while music.isPlaying, done < frames {
      let wanted = isPaused ? min(frames - done, fading) : frames - done
      guard wanted > 0 else { break }
      let target = unsafe UnsafeMutableBufferPointer(rebasing: file[(done * channels)...])
      let (count, change) = unsafe music.take(wanted, into: target)
      if count > 0 { postUnderrun(&ports) }
      done += count
      if isPaused { fading -= count }
      if let change {
        post(change, &ports)
      } else if count < wanted {
        if music.hasBegun { missing += wanted - count }
        break
      }
    }
    unsafe file.extracting(done * channels..<frames * channels).update(repeating: 0)
    if done > 0 {
      var span = unsafe MutableSpan(_unsafeElements: file.extracting(0..<done * channels))
      pause.apply(to: &span, channels: channels)
    }
    return done
  }

  private mutating func post(_ change: FilePlayer.Change, _ ports: inout Ports) {
    switch change {
    case .began: ports.post(Event.began.rawValue) { $0.field("path", utf8: music.text) }
    case .failed: ports.post(Event.failed.rawValue) { $0.field("text", utf8: music.text) }
    case .completed:
      let (plays, frames) = (music.plays, music.frames)
      ports.post(Event.completed.rawValue) { event in
        event.field("plays", plays)
        event.field("samples", frames)
      }
    }
    music.settle(change)
  }

  private mutating func postUnderrun(_ ports: inout Ports) {
    guard missing > 0 else { return }
    underruns += 1
    let (samples, count) = (missing, underruns)
    missing = 0
    ports.post(Event.underrun.rawValue) { event in
      event.field("samples", samples)
      event.field("count", count)
    }
  }

  // MARK: Output

  /// The file alone, for the loudspeaker.
  private mutating func emitPlayback(
    like packet: borrowing Packet, _ frames: Int, _ ports: inout Ports
  ) throws(NodeFault) {
    // The file belongs to no reply.
    var output = try ports.makePacket(
      Self.playbackPort, bytes: frames * channels * sample.byteCount, of: .none)
    output.timestamp = packet.timestamp
    output.position = packet.position
    output.duration = frames
    _ = unsafe sum.update(fromContentsOf: file)
    var scaled = unsafe MutableSpan(_unsafeElements: sum.extracting(0..<frames * channels))
    playback.apply(to: &scaled, channels: channels)
    write(to: &output, frames)
    ports.emit(output, to: Self.playbackPort)
  }

  /// Adds the file to a packet of the uplink.
  private mutating func add(to packet: inout Packet, _ frames: Int) {
    _ = unsafe sum.update(fromContentsOf: file)
    var total = unsafe MutableSpan(_unsafeElements: sum.extracting(0..<frames * channels))
    send.apply(to: &total, channels: channels)
    switch sample {
    case .s16: SampleMath.mix(packet.samples(of: Int16.self), into: &total)
    case .f32: SampleMath.mix(packet.samples(of: Float.self), into: &total)
    }
    write(to: &packet, frames)
  }

  /// Writes the sum into a packet, limited to full scale.
  private func write(to packet: inout Packet, _ frames: Int) {
    let total = unsafe Span(_unsafeElements: sum.extracting(0..<frames * channels))
    switch sample {
    case .s16:
      var target = packet.mutableSamples(of: Int16.self)
      SampleConversion.convert(total, into: &target)
    case .f32:
      var target = packet.mutableSamples(of: Float.self)
      for index in target.indices { target[index] = max(-1, min(1, SampleMath.sanitized(total[index]))) }
    }
  }
}
