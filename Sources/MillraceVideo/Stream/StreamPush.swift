internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// What a stream is made of, as its encoders describe it; apart from them, since they belong to another thread.
@safe
final class StreamHeader: @unchecked Sendable {
  /// Of the pictures, and of the sound if there is any.
  let parameters: [UnsafeMutablePointer<AVCodecParameters>]
  let rate: AVRational
  /// What a packet lasts.
  let durations: [Nanoseconds]

  init(_ encoder: FilmEncoder) {
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

/// One connection to a server, from its attempt to its end. Blocks within its bound; one thread.
@safe
final class StreamPush {
  private let terms: PushThread.Terms
  private let bound: StreamBound
  private var context: UnsafeMutablePointer<AVFormatContext>?
  private var hasHeader = false
  /// The time that is the connection's 0.
  private var origin: Nanoseconds?

  init(_ terms: PushThread.Terms, bound: StreamBound) {
    self.terms = terms
    self.bound = bound
  }

  deinit { close() }

  /// Connects and announces the stream; answers why that failed.
  func open(_ header: StreamHeader) -> String? {
    millrace_av_clear_log()
    bound.allow(terms.patience)
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
    for (key, value) in terms.address.options(patience: terms.patience) {
      unsafe av_dict_set(&options, key, value, 0)
    }
    var status = unsafe avio_open2(
      &context.pointee.pb, terms.address.url, AVIO_FLAG_WRITE, &context.pointee.interrupt_callback, &options)
    guard status >= 0 else { return terms.address.cause ?? words(status) }
    var flags: OpaquePointer?
    defer { unsafe av_dict_free(&flags) }
    // A stream has no end yet that could be written into its beginning.
    unsafe av_dict_set(&flags, "flvflags", "no_duration_filesize", 0)
    status = unsafe avformat_write_header(context, &flags)
    guard status >= 0 else { return words(status) }
    hasHeader = true
    return nil
  }

  /// Whether a packet lies before what the connection began with: sound that came later than its picture. FLV has no times before
  /// its beginning, and libavformat ends the stream over one.
  func isTooEarly(_ packet: EncodedPacket) -> Bool { origin.map { packet.time < $0 } ?? false }

  /// Sends a packet; answers why that failed.
  func send(_ packet: EncodedPacket, _ header: StreamHeader) -> String? {
    guard let context = unsafe context, let stream = unsafe context.pointee.streams[packet.track.rawValue]
    else { return "there is no connection" }
    let start = origin ?? packet.time
    origin = start
    packet.setTime(
      unsafe stream.pointee.time_base, origin: start, duration: header.durations[packet.track.rawValue])
    unsafe packet.packet.pointee.stream_index = Int32(packet.track.rawValue)
    bound.allow(terms.patience)
    millrace_av_clear_log()
    let status = unsafe av_write_frame(context, packet.packet)
    return status < 0 ? words(status) : nil
  }

  /// Takes leave of the server, within a second.
  func close() {
    guard let context = unsafe context else { return }
    bound.allow(.milliseconds(1_000))
    if hasHeader { unsafe av_write_trailer(context) }
    unsafe avio_closep(&context.pointee.pb)
    unsafe avformat_free_context(context)
    unsafe self.context = nil
    hasHeader = false
  }

  /// Why the library gave up, without what nobody may see.
  private func words(_ status: Int32) -> String {
    if bound.isReached || status == millrace_averror(ETIMEDOUT) {
      return "it said nothing for \(terms.patience / 1_000_000) ms"
    }
    let line = unsafe String(cString: millrace_av_last_log())
    let code = LibraryMessage.describe(status)
    let text = line.isEmpty ? code : "\(LibraryMessage.withoutAddresses(line)) (\(code))"
    return terms.address.secrets.removed(from: text)
  }
}
