internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// The parameters of a stream's encoders, copied, since the encoders belong to another thread.
@safe
final class StreamHeader: @unchecked Sendable {
  /// Of the pictures, and of the audio if there is any.
  let parameters: [UnsafeMutablePointer<AVCodecParameters>]
  let rate: AVRational
  /// Durations of a packet.
  let durations: [Nanoseconds]

  init(_ encoder: MediaEncoder) {
    var codecs = unsafe [encoder.pictures.codec]
    var durations = [encoder.pictures.period]
    if let sound = encoder.sound {
      unsafe codecs.append(sound.codec)
      let (block, rate) = unsafe (sound.codec.pointee.frame_size, sound.codec.pointee.sample_rate)
      durations.append(.samples(Int64(block), rate: Int(rate)))
    }
    unsafe rate = encoder.pictures.codec.pointee.framerate
    self.durations = durations
    unsafe parameters = codecs.map { codec in
      guard let made = unsafe avcodec_parameters_alloc(),
        unsafe avcodec_parameters_from_context(made, codec) >= 0
      else { fatalError("no memory for a stream") }
      return unsafe made
    }
  }

  deinit {
    for index in unsafe parameters.indices {
      var made: UnsafeMutablePointer<AVCodecParameters>? = unsafe parameters[index]
      unsafe avcodec_parameters_free(&made)
    }
  }
}

/// One connection to a server, from the attempt to the end. Blocks within its deadline; confined to one thread.
@safe
final class StreamPush {
  private let settings: PushThread.Settings
  private let bound: StreamInterrupt
  private var context: UnsafeMutablePointer<AVFormatContext>?
  private var hasHeader = false
  /// The time that corresponds to 0 on this connection.
  private var origin: Nanoseconds?

  init(_ settings: PushThread.Settings, bound: StreamInterrupt) {
    self.settings = settings
    self.bound = bound
  }

  deinit { close() }

  /// Connects and publishes the stream; returns the error if that fails.
  func open(_ header: StreamHeader) -> String? {
    millrace_av_clear_log()
    bound.allow(settings.timeout)
    let made = unsafe avformat_alloc_output_context2(&context, nil, "flv", nil)
    guard made >= 0, let context = unsafe context else { return words(made) }
    unsafe bound.attach(to: context)
    unsafe context.pointee.flags |= AVFMT_FLAG_FLUSH_PACKETS
    for index in unsafe header.parameters.indices {
      guard let stream = unsafe avformat_new_stream(context, nil),
        unsafe avcodec_parameters_copy(stream.pointee.codecpar, header.parameters[index]) >= 0
      else { return words(millrace_averror_no_memory) }
      // Another container's code for the same codec.
      unsafe stream.pointee.codecpar.pointee.codec_tag = 0
      unsafe stream.pointee.avg_frame_rate = header.rate
    }
    var options: OpaquePointer?
    defer { unsafe av_dict_free(&options) }
    for (key, value) in settings.address.options(timeout: settings.timeout) {
      unsafe av_dict_set(&options, key, value, 0)
    }
    var status = unsafe avio_open2(
      &context.pointee.pb, settings.address.url, AVIO_FLAG_WRITE, &context.pointee.interrupt_callback,
      &options)
    guard status >= 0 else { return settings.address.cause ?? words(status) }
    var flags: OpaquePointer?
    defer { unsafe av_dict_free(&flags) }
    // A live stream has no duration to write into its header.
    unsafe av_dict_set(&flags, "flvflags", "no_duration_filesize", 0)
    status = unsafe avformat_write_header(context, &flags)
    guard status >= 0 else { return words(status) }
    hasHeader = true
    return nil
  }

  /// True for a packet before the connection's first one: audio that arrived later than its picture. FLV has no negative times, and
  /// libavformat fails on them.
  func isTooEarly(_ packet: EncodedPacket) -> Bool { origin.map { packet.time < $0 } ?? false }

  /// Sends a packet; returns the error if that fails.
  func send(_ packet: EncodedPacket, _ header: StreamHeader) -> String? {
    guard let context = unsafe context, let stream = unsafe context.pointee.streams[packet.track.rawValue]
    else { return "not connected" }
    let start = origin ?? packet.time
    origin = start
    packet.setTime(
      unsafe stream.pointee.time_base, origin: start, duration: header.durations[packet.track.rawValue])
    unsafe packet.packet.pointee.stream_index = Int32(packet.track.rawValue)
    bound.allow(settings.timeout)
    millrace_av_clear_log()
    let status = unsafe av_write_frame(context, packet.packet)
    return status < 0 ? words(status) : nil
  }

  /// Closes the connection properly, within a second.
  func close() {
    guard let context = unsafe context else { return }
    bound.allow(.milliseconds(1_000))
    if hasHeader { unsafe av_write_trailer(context) }
    unsafe avio_closep(&context.pointee.pb)
    unsafe avformat_free_context(context)
    unsafe self.context = nil
    hasHeader = false
  }

  /// The library's error, without secrets.
  private func words(_ status: Int32) -> String {
    if bound.isReached || status == millrace_averror(ETIMEDOUT) {
      return "no answer for \(settings.timeout / 1_000_000) ms"
    }
    let line = unsafe String(cString: millrace_av_last_log())
    let code = LibraryMessage.describe(status)
    let text = line.isEmpty ? code : "\(LibraryMessage.withoutAddresses(line)) (\(code))"
    return settings.address.secrets.redacting(text)
  }
}
