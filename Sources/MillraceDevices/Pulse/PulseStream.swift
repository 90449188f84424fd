internal import CMillraceSys
internal import CPulse
internal import MillraceCore

/// A stream to or from a sound server: PulseAudio, or PipeWire through its PulseAudio interface.
///
/// After `start`, everything runs on the thread of libpulse's threaded main loop, one callback at a time. When the server or the device
/// disappears, the stream reports it to the line and is recreated after 0.1 s, then 0.2 s, up to 2 s. A stream on the server's default
/// device follows the default; one on a named device waits for that device.
@safe
final class PulseStream: AudioDevice, @unchecked Sendable {
  /// The direction of the audio.
  enum Role {
    case capture(CaptureLine, CaptureFormat)
    case playback(PlaybackLine)
  }

  /// Longest wait in `start`, in nanoseconds.
  private static let timeout: Nanoseconds = 3_000_000_000
  /// First and longest backoff before the stream is recreated, in microseconds.
  private static let firstPause: UInt64 = 100_000
  private static let longestPause: UInt64 = 2_000_000

  let settings: DeviceSettings
  let role: Role
  private let opening = Promise<Int32>()
  private var loop: OpaquePointer?
  private var api: UnsafeMutablePointer<pa_mainloop_api>?
  private var context: OpaquePointer?
  var stream: OpaquePointer?
  private var timer: OpaquePointer?
  private var bellEvent: OpaquePointer?
  private var pause = PulseStream.firstPause
  /// True once the stream was open. From then on a loss is recovered instead of failing `start`.
  private var wasOpen = false
  var player: PulsePlayer

  init(_ settings: DeviceSettings, _ role: Role) {
    self.settings = settings
    self.role = role
    switch role {
    case .capture: player = PulsePlayer(rate: 48_000, channels: 1)
    case .playback(let line): player = PulsePlayer(rate: line.rate, channels: line.channels)
    }
  }

  /// This object as the callbacks' user data.
  private var userData: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

  /// The stream behind a callback's user data.
  static func from(_ pointer: UnsafeMutableRawPointer?) -> PulseStream {
    guard let pointer = unsafe pointer else { fatalError("PulseAudio called back without context") }
    return unsafe Unmanaged<PulseStream>.fromOpaque(pointer).takeUnretainedValue()
  }

  // MARK: Life

  func start() throws(NodeProblem) {
    guard let loop = unsafe pa_threaded_mainloop_new(), let api = unsafe pa_threaded_mainloop_get_api(loop)
    else { throw NodeProblem("libpulse is out of memory") }
    unsafe self.loop = unsafe loop
    unsafe self.api = unsafe api
    if case .playback(let line) = role, let wakePipe = line.wakePipe {
      unsafe bellEvent = api.pointee.io_new(
        api, wakePipe.descriptor, PA_IO_EVENT_INPUT, { unsafe PulseStream.from($4).blocksReady() }, userData)
    }
    connect()
    guard unsafe pa_threaded_mainloop_start(loop) >= 0 else {
      stop()
      throw NodeProblem(
        "the system cannot create another thread", cure: "raise the limit of processes (ulimit -u)")
    }
    let answer = opening.wait(Self.timeout)
    guard answer == 0 else {
      stop()
      throw problem(answer)
    }
  }

  func stop() {
    guard let loop = unsafe self.loop else { return }
    // Stops the thread, and with it every callback.
    unsafe pa_threaded_mainloop_stop(loop)
    tearDown()
    if let bellEvent = unsafe bellEvent, let api = unsafe api { unsafe api.pointee.io_free(bellEvent) }
    unsafe bellEvent = nil
    unsafe pa_threaded_mainloop_free(loop)
    unsafe self.loop = nil
    unsafe api = nil
  }

  private func connect() {
    guard let api = unsafe api, let context = unsafe pa_context_new(api, "Millrace") else {
      return handleFailure(Int32(PA_ERR_INTERNAL.rawValue))
    }
    unsafe self.context = unsafe context
    unsafe pa_context_set_state_callback(context, { unsafe PulseStream.from($1).contextChanged() }, userData)
    if unsafe pa_context_connect(context, nil, PA_CONTEXT_NOAUTOSPAWN, nil) < 0 {
      handleFailure(unsafe pa_context_errno(context))
    }
  }

  private func tearDown() {
    if let timer = unsafe timer, let api = unsafe api { unsafe api.pointee.time_free(timer) }
    unsafe timer = nil
    if let stream = unsafe stream {
      unsafe pa_stream_set_state_callback(stream, nil, nil)
      unsafe pa_stream_set_read_callback(stream, nil, nil)
      unsafe pa_stream_set_write_callback(stream, nil, nil)
      _ = unsafe pa_stream_disconnect(stream)
      unsafe pa_stream_unref(stream)
    }
    unsafe stream = nil
    if let context = unsafe context {
      unsafe pa_context_set_state_callback(context, nil, nil)
      unsafe pa_context_disconnect(context)
      unsafe pa_context_unref(context)
    }
    unsafe context = nil
  }

  // MARK: The server's thread

  private func contextChanged() {
    guard let context = unsafe context else { return }
    switch unsafe pa_context_get_state(context) {
    case PA_CONTEXT_READY:
      AudioThread.raisePriority()
      unsafe openStream(context)
    case PA_CONTEXT_FAILED, PA_CONTEXT_TERMINATED: handleFailure(unsafe pa_context_errno(context))
    default: break
    }
  }

  private func openStream(_ context: OpaquePointer) {
    var form = format
    guard let stream = unsafe pa_stream_new(context, streamName, &form, nil) else {
      return handleFailure(unsafe pa_context_errno(context))
    }
    unsafe self.stream = unsafe stream
    unsafe pa_stream_set_state_callback(stream, { unsafe PulseStream.from($1).streamChanged() }, userData)
    let name: String? = settings.name.name.isEmpty ? nil : settings.name.name
    let stays = name == nil ? 0 : PA_STREAM_DONT_MOVE.rawValue
    let status: Int32
    var buffer = bufferSizes(form)
    switch role {
    case .capture:
      unsafe pa_stream_set_read_callback(stream, { unsafe PulseStream.from($2).readable() }, userData)
      status = unsafe pa_stream_connect_record(
        stream, name, &buffer, pa_stream_flags_t(PA_STREAM_ADJUST_LATENCY.rawValue | stays))
    case .playback:
      unsafe pa_stream_set_write_callback(stream, { unsafe PulseStream.from($2).writable() }, userData)
      status = unsafe pa_stream_connect_playback(
        stream, name, &buffer,
        pa_stream_flags_t(
          PA_STREAM_EARLY_REQUESTS.rawValue | PA_STREAM_AUTO_TIMING_UPDATE.rawValue | stays), nil, nil)
    }
    if status < 0 { handleFailure(unsafe pa_context_errno(context)) }
  }

  private var streamName: String {
    if case .capture = role { return "microphone" }
    return "loudspeaker"
  }

  private var format: pa_sample_spec {
    switch role {
    case .capture(_, let shape):
      pa_sample_spec(
        format: shape.sample == .s16 ? PA_SAMPLE_S16LE : PA_SAMPLE_FLOAT32LE, rate: UInt32(shape.rate),
        channels: UInt8(shape.channels))
    case .playback(let line):
      pa_sample_spec(
        format: PA_SAMPLE_FLOAT32LE, rate: UInt32(line.rate), channels: UInt8(line.channels))
    }
  }

  /// The server's buffer sizes. Capture: fragments of one interval. Playback: the server requests audio every interval; its buffer holds half
  /// a second, so requests never stop; and it plays from the start, with or without audio (no prebuffering), so that its position is a
  /// clock.
  private func bufferSizes(_ form: pa_sample_spec) -> pa_buffer_attr {
    var form = form
    let interval = unsafe pa_usec_to_bytes(UInt64(settings.interval / 1_000), &form)
    var buffer = pa_buffer_attr(
      maxlength: UInt32.max, tlength: UInt32.max, prebuf: UInt32.max, minreq: UInt32.max, fragsize: UInt32.max
    )
    switch role {
    case .capture: buffer.fragsize = UInt32(interval)
    case .playback:
      unsafe buffer.tlength = UInt32(pa_usec_to_bytes(PulsePlayer.room, &form))
      buffer.prebuf = 0
      buffer.minreq = UInt32(interval)
    }
    return buffer
  }

  private func streamChanged() {
    guard let stream = unsafe stream else { return }
    switch unsafe pa_stream_get_state(stream) {
    case PA_STREAM_READY:
      wasOpen = true
      pause = Self.firstPause
      player.begin(frames: unsafe Int(pa_stream_get_buffer_attr(stream).pointee.tlength))
      opening.fulfill(0)
    case PA_STREAM_FAILED, PA_STREAM_TERMINATED:
      handleFailure(unsafe context.map { unsafe pa_context_errno($0) } ?? 0)
    default: break
    }
  }

  /// Handles the loss of the stream or its server, or a failure to open it.
  private func handleFailure(_ code: Int32) {
    guard wasOpen else { return opening.fulfill(code == 0 ? Int32(PA_ERR_UNKNOWN.rawValue) : code) }
    let now = millrace_monotonic_ns()
    switch role {
    case .capture(let line, _): line.lose(at: now)
    case .playback(let line): line.lose(at: now)
    }
    guard unsafe timer == nil, let api = unsafe api else { return }
    // The caller still uses the stream and the context; tear them down later.
    var time = timeval()
    unsafe pa_gettimeofday(&time)
    unsafe pa_timeval_add(&time, pause)
    pause = min(pause * 2, Self.longestPause)
    unsafe timer = api.pointee.time_new(api, &time, { unsafe PulseStream.from($3).reconnect() }, userData)
  }

  private func reconnect() {
    tearDown()
    connect()
  }

  private func readable() {
    guard case .capture(let line, let shape) = role, let stream = unsafe stream else { return }
    let frameBytes = shape.channels * shape.sample.byteCount
    line.arrive(unsafe pa_stream_readable_size(stream) / frameBytes, at: millrace_monotonic_ns())
    while unsafe pa_stream_readable_size(stream) > 0 {
      var data: UnsafeRawPointer?
      var count = 0
      guard unsafe pa_stream_peek(stream, &data, &count) >= 0, count > 0 else { return }
      // Bytes without data are a gap in the server's buffer.
      unsafe line.take(data, frames: count / frameBytes)
      _ = unsafe pa_stream_drop(stream)
    }
  }

  private func writable() {
    guard case .playback(let line) = role, let stream = unsafe stream else { return }
    unsafe player.notePosition(stream, line)
    unsafe player.write(stream, line)
  }

  private func blocksReady() {
    guard case .playback(let line) = role else { return }
    line.wakePipe?.clear()
    guard let stream = unsafe stream, unsafe pa_stream_get_state(stream) == PA_STREAM_READY else { return }
    unsafe player.write(stream, line)
  }

  // MARK: Errors

  private func problem(_ code: Int32?) -> NodeProblem {
    let isCapture = if case .capture = role { true } else { false }
    let other =
      "run \"millrace devices\" for a list; without audio hardware set \"device\" to file or null"
    guard let code else {
      return NodeProblem("timed out waiting for the sound server", parameter: "device", cure: other)
    }
    if code == Int32(PA_ERR_CONNECTIONREFUSED.rawValue) {
      return NodeProblem(
        "no sound server is running", parameter: "device", cure: "start PulseAudio or PipeWire; \(other)")
    }
    let reason = unsafe String(cString: pa_strerror(code))
    guard code == Int32(PA_ERR_NOENTITY.rawValue) else {
      return NodeProblem(
        "the sound server refused the \(isCapture ? "capture" : "playback") stream: \(reason)",
        parameter: "device", cure: other)
    }
    let names = AudioDeviceList.pulse().filter { isCapture ? $0.records : $0.plays }.map {
      "\"\($0.device)\""
    }
    let direction = isCapture ? "capture" : "playback"
    let named =
      settings.name.name.isEmpty
      ? "default \(direction) device" : "\(direction) device \"\(settings.name.name)\""
    return NodeProblem(
      "the sound server has no \(named)", parameter: "device",
      cure: names.isEmpty ? other : "use one of \(names.joined(separator: ", ")), or file or null")
  }
}
