import CFFmpeg
import CMediaShim
import Glibc

/// Publishes a video to a stream server as a live stream: every packet at its time, from its own thread, repeatedly. The video's own packets
/// (H.264, AAC) are sent, so that only the server is between the sender's clock and the player's; with a message in each key frame, if there is
/// one.
public final class LiveStream: @unchecked Sendable {
  private struct State {
    var wantsEnd = false
    var hasEnded = false
    var isHeld = false
    var start: Int64?
    var problem: String?
  }
  private var state = State()
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let bound = millrace_av_bound_new()!
  private let video: String
  private let url: String
  private let passes: Int
  private let message: [UInt8]

  /// Sends a video this many times, without a gap.
  /// - Parameter message: user data for each key frame: 16 bytes of UUID, then the content, without two zero bytes in a row.
  public init(video: String, to url: String, passes: Int = .max, message: [UInt8] = []) {
    self.video = video
    self.url = url
    self.passes = passes
    self.message = message.isEmpty ? [] : Self.unit(message)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    var thread = pthread_t()
    let parcel = Unmanaged.passRetained(self)
    let status = pthread_create(
      &thread, nil,
      {
        let stream = Unmanaged<LiveStream>.fromOpaque($0!).takeRetainedValue()
        stream.run()
        return nil
      }, parcel.toOpaque())
    precondition(status == 0, "no thread for a stream")
    pthread_detach(thread)
  }

  deinit {
    millrace_av_bound_free(bound)
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  private func with<Answer>(_ body: (inout State) -> Answer) -> Answer {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&state)
  }

  /// When the video's time 0 was sent, in nanoseconds of the monotonic clock; nil before it was.
  public var start: Int64? { with { $0.start } }

  /// Why it ended early; nil if it did not fail.
  public var problem: String? { with { $0.problem } }

  /// Sends nothing until `release`, like a network that stalls.
  public func hold() { with { $0.isHeld = true } }

  /// Sends at once what was held up, and continues.
  public func release() { with { $0.isHeld = false } }

  /// Ends it like a killed program: the server sees the connection close.
  public func stop() {
    with { $0.wantsEnd = true }
    millrace_av_bound_cancel(bound)
    while !with({ $0.hasEnded }) { usleep(1_000) }
  }

  /// Waits until it is being sent; false if it failed.
  public func waitForStart() -> Bool {
    while true {
      let (start, hasEnded) = with { ($0.start, $0.hasEnded) }
      if start != nil || hasEnded { return start != nil }
      usleep(1_000)
    }
  }

  // MARK: The thread

  private func run() {
    millrace_av_capture_log()
    let status = send()
    let words =
      "\(String(cString: millrace_av_error_text(status))): \(String(cString: millrace_av_last_log()))"
    with { state in
      if status < 0 && !state.wantsEnd { state.problem = words }
      state.hasEnded = true
    }
  }

  private func send() -> Int32 {
    var input: UnsafeMutablePointer<AVFormatContext>?
    var status = avformat_open_input(&input, video, nil, nil)
    guard status >= 0, let input else { return status }
    defer {
      var input: UnsafeMutablePointer<AVFormatContext>? = input
      avformat_close_input(&input)
    }
    avformat_find_stream_info(input, nil)
    var output: UnsafeMutablePointer<AVFormatContext>?
    status = avformat_alloc_output_context2(&output, nil, "flv", url)
    guard status >= 0, let output else { return status }
    defer { avformat_free_context(output) }
    for index in 0..<Int(input.pointee.nb_streams) {
      let stream = avformat_new_stream(output, nil)!
      avcodec_parameters_copy(stream.pointee.codecpar, input.pointee.streams[index]!.pointee.codecpar)
      stream.pointee.codecpar.pointee.codec_tag = 0
    }
    output.pointee.flags |= AVFMT_FLAG_FLUSH_PACKETS
    millrace_av_bound_attach(bound, output)
    var options: OpaquePointer?
    av_dict_set(&options, "tcp_nodelay", "1", 0)
    av_dict_set(&options, "rw_timeout", "120000000", 0)
    defer { av_dict_free(&options) }
    var callback = output.pointee.interrupt_callback
    status = avio_open2(&output.pointee.pb, url, AVIO_FLAG_WRITE, &callback, &options)
    guard status >= 0 else { return status }
    defer { avio_closep(&output.pointee.pb) }
    av_dict_set(&options, "flvflags", "no_duration_filesize", 0)
    status = avformat_write_header(output, &options)
    guard status >= 0 else { return status }
    status = sendPackets(from: input, to: output)
    if status >= 0 { status = av_write_trailer(output) }
    return status
  }

  private func sendPackets(
    from input: UnsafeMutablePointer<AVFormatContext>, to output: UnsafeMutablePointer<AVFormatContext>
  ) -> Int32 {
    let start = Self.now
    with { $0.start = start }
    var packet = av_packet_alloc()
    defer { av_packet_free(&packet) }
    let milliseconds = AVRational(num: 1, den: 1_000)
    var offset: Int64 = 0
    var last: Int64 = 0
    var pass = 0
    while !with({ $0.wantsEnd }) {
      guard av_read_frame(input, packet) >= 0 else {
        pass += 1
        guard pass < passes, av_seek_frame(input, -1, 0, 1) >= 0 else { return 0 }
        offset = last
        continue
      }
      let index = Int(packet!.pointee.stream_index)
      let stream = input.pointee.streams[index]!
      let end = packet!.pointee.dts + packet!.pointee.duration
      last = max(last, offset + av_rescale_q(end, stream.pointee.time_base, milliseconds))
      let time = offset + av_rescale_q(packet!.pointee.dts, stream.pointee.time_base, milliseconds)
      rest(until: start + time * 1_000_000)
      av_packet_rescale_ts(
        packet, stream.pointee.time_base, output.pointee.streams[index]!.pointee.time_base)
      let shift = av_rescale_q(offset, milliseconds, output.pointee.streams[index]!.pointee.time_base)
      packet!.pointee.dts += shift
      packet!.pointee.pts += shift
      packet!.pointee.pos = -1
      addMessage(to: packet!, stream)
      let status = av_write_frame(output, packet)
      av_packet_unref(packet)
      if status < 0 { return status }
    }
    return 0
  }

  /// An SEI NAL unit of user data unregistered, with its length (ITU-T H.264, 7.3.2.3 and D.1.7; ISO/IEC 14496-15, 5.3.4.2).
  private static func unit(_ message: [UInt8]) -> [UInt8] {
    let length = [UInt8](repeating: 255, count: message.count / 255) + [UInt8(message.count % 255)]
    let unit = [6, 5] + length + message + [0x80]
    return (0..<4).map { UInt8(truncatingIfNeeded: unit.count >> (24 - 8 * $0)) } + unit
  }

  /// Puts the message in front of a key frame.
  private func addMessage(to packet: UnsafeMutablePointer<AVPacket>, _ stream: UnsafeMutablePointer<AVStream>)
  {
    guard !message.isEmpty, packet.pointee.flags & AV_PKT_FLAG_KEY != 0,
      stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO
    else { return }
    let size = Int(packet.pointee.size)
    precondition(av_grow_packet(packet, Int32(message.count)) >= 0, "no memory for a message")
    let data = packet.pointee.data!
    memmove(data + message.count, data, size)
    for (index, byte) in message.enumerated() { data[index] = byte }
  }

  private func rest(until time: Int64) {
    while true {
      let (wantsEnd, isHeld) = with { ($0.wantsEnd, $0.isHeld) }
      let left = isHeld ? 20_000_000 : time - Self.now
      guard !wantsEnd, left > 0 else { return }
      usleep(UInt32(min(20_000, max(1, left / 1_000))))
    }
  }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
