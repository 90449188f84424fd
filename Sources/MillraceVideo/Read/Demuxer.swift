internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// Demultiplexes a file stream by stream, or a live stream in order of arrival. While one stream of a file is read, packets of the other
/// wait in a bounded queue. If the streams are interleaved too far apart, the one that lags is read separately, from a second handle of the
/// file.
///
/// Blocks; not thread-safe.
@safe
final class Demuxer {
  /// The input to open.
  struct Source: Sendable {
    /// The URL for libavformat.
    var url: String
    /// An input device instead of a file, such as `lavfi`.
    var device: String?
    var options: [String: String] = [:]
    /// The name in messages.
    var name: String
    /// The same without quotes.
    var shownPath: String { name.hasPrefix("\"") ? String(name.dropFirst().dropLast()) : name }
    /// The cure if it cannot be opened.
    var cure: String?
    /// For a live stream: interrupts waiting. Its packets are read as they arrive, without probing ahead.
    var bound: StreamInterrupt?
    /// Secrets to remove from the library's messages.
    var secrets = Secrets()
    /// Size of the largest picture to decode, in pixels.
    var mostPixels = PictureHeader.defaultMaxPixels

    /// A file.
    init(file path: String, mostPixels: Int = PictureHeader.defaultMaxPixels) {
      self.mostPixels = mostPixels
      // The prefix keeps names such as "concat:..." from being taken for a protocol.
      url = "file:" + path
      options = SupportedContainer.options
      name = "\"\(path)\""
      cure = "check that it is a complete video or picture file"
    }

    /// An input device of libavdevice.
    init(
      device: String, url: String, options: [String: String] = [:], name: String, cure: String? = nil
    ) {
      self.cure = cure
      self.url = url
      self.device = device
      self.options = options
      self.name = name
    }

    /// A live stream.
    init(_ address: StreamAddress, options: [String: String], bound: StreamInterrupt, mostPixels: Int) {
      self.mostPixels = mostPixels
      url = address.url
      name = address.name
      secrets = address.secrets
      self.options = options
      self.bound = bound
    }
  }

  let source: Source
  private(set) var context: UnsafeMutablePointer<AVFormatContext>?
  /// True if the file ended inside a packet, or was abandoned before its end.
  var isCut: Bool { endsInDamage || isLastCorrupt && hasEnded || separate.values.contains { $0.isCut } }
  private(set) var words = LibraryMessage()
  /// Why a stream could not be read separately; nil if there was no error.
  private(set) var refusal: NodeProblem?
  private var queues: [Int: PacketQueue] = [:]
  /// Streams that are read separately.
  private var separate: [Int: Demuxer] = [:]
  /// Packets read so far, by stream.
  private var counts: [Int: Int] = [:]
  private var hasEnded = false
  private var endsInDamage = false
  /// The library marked the last packet as incomplete.
  private var isLastCorrupt = false
  /// Most packets, and bytes of them, in the queues: a well-interleaved file needs a second of either, which is 25 MB for 8K.
  static let maximumQueued = (packets: 8_192, bytes: 64 << 20)
  /// Most packets of other streams skipped in one call: some milliseconds of reading.
  private static let maximumSkipped = 256

  /// Opens a file or device and finds its streams.
  init(_ source: Source) throws(NodeProblem) {
    self.source = source
    millrace_av_clear_log()
    var format: UnsafePointer<AVInputFormat>?
    if let device = source.device {
      unsafe format = millrace_av_find_device(device)
      guard unsafe format != nil else { throw Self.noDevice(device) }
    }
    if let bound = source.bound {
      // Set explicitly, because probing would wait for two kilobytes.
      unsafe format = av_find_input_format("flv")
      guard let made = unsafe avformat_alloc_context() else { fatalError("no memory for a stream") }
      unsafe made.pointee.flags |= AVFMT_FLAG_NOBUFFER
      unsafe bound.attach(to: made)
      unsafe context = made
    }
    var options: OpaquePointer?
    for (key, value) in source.options { unsafe av_dict_set(&options, key, value, 0) }
    let status = unsafe avformat_open_input(&context, source.url, format, &options)
    unsafe av_dict_free(&options)
    guard status >= 0 else {
      if let problem = FileMessages.exhaustion(-status, source.shownPath, for: .reading) { throw problem }
      if source.device == nil, source.bound == nil,
        let name = SupportedContainer.unknownName(source.url, status: status)
      {
        let refusal = SupportedContainer.refusal(name)
        throw problem(refusal.text, cure: refusal.cure)
      }
      throw problem("cannot be opened: \(reason(status))", cure: source.cure)
    }
    // Probing a live stream takes seconds, and its packets describe it anyway.
    guard source.bound == nil else { return }
    try checkOnlyStream()
    let most = PictureLimit.withEdges(source.mostPixels)
    let found = unsafe context.map { unsafe millrace_av_find_stream_info($0, most) } ?? 0
    guard found >= 0 else { throw problem("cannot be read: \(reason(found))", cure: source.cure) }
    discardAll()
  }

  deinit {
    for queue in queues.values { queue.clear() }
    unsafe avformat_close_input(&context)
  }

  /// Refuses a file whose container declares too large pictures, before the library probes it and discards that value. With several video
  /// streams, the chosen one is checked later.
  private func checkOnlyStream() throws(NodeProblem) {
    guard let context = unsafe context else { return }
    var pictures: [UnsafePointer<AVCodecParameters>] = unsafe []
    for index in unsafe 0..<Int(context.pointee.nb_streams) {
      guard let parameters = unsafe context.pointee.streams[index]?.pointee.codecpar,
        unsafe parameters.pointee.codec_type == AVMEDIA_TYPE_VIDEO
      else { continue }
      unsafe pictures.append(UnsafePointer(parameters))
    }
    if unsafe pictures.count == 1 { unsafe try checkSize(pictures[0]) }
  }

  private static func noDevice(_ device: String) -> NodeProblem {
    let refusal = unsafe String(cString: millrace_av_device_error())
    return NodeProblem(
      "FFmpeg's input device \"\(device)\" is not available" + (refusal.isEmpty ? "" : ": \(refusal)"),
      cure: "install libavdevice")
  }

  /// An error about the source.
  func problem(_ text: String, cure: String?) -> NodeProblem {
    NodeProblem("\(source.name) \(text)", parameter: source.device == nil ? "path" : nil, cure: cure)
  }

  /// The line that the library logged, if any; otherwise the message for the code.
  func reason(_ code: Int32) -> String {
    words.keep()
    let described = LibraryMessage.describe(code)
    guard let line = words.text else { return source.secrets.redacting(described) }
    // A protocol's line says what failed, but not the system error.
    let isMore = source.bound != nil && (1..<4_096).contains(-code) && !line.contains(described)
    return source.secrets.redacting(isMore ? "\(line): \(described)" : line)
  }

  // MARK: Streams

  /// A stream.
  func stream(_ index: Int) -> UnsafeMutablePointer<AVStream>? {
    unsafe context?.pointee.streams[index]
  }

  /// The best stream of a kind and its decoder; nil if there is none.
  func best(
    _ kind: AVMediaType, beside other: Int = -1
  ) throws(NodeProblem) -> (index: Int, decoder: UnsafePointer<AVCodec>)? {
    var decoder: UnsafePointer<AVCodec>?
    let index = unsafe av_find_best_stream(context, kind, -1, Int32(other), &decoder, 0)
    if index == millrace_averror_decoder_not_found {
      throw problem("uses a codec for which this system has no decoder", cure: "convert it to H.264 and AAC")
    }
    guard index >= 0, let decoder = unsafe decoder else { return nil }
    return unsafe (Int(index), decoder)
  }

  /// libavformat's name of the container: `avi`, `mov,mp4,m4a,3gp,3g2,mj2`.
  var containerName: String {
    unsafe context.map { unsafe String(cString: $0.pointee.iformat.pointee.name) } ?? ""
  }

  /// The streams, such as `audio aac, subtitle subrip`.
  var streamNames: String { unsafe LibraryMessage.streams(of: context) }

  private func discardAll() {
    guard let context = unsafe context else { return }
    for index in unsafe 0..<Int(context.pointee.nb_streams) {
      unsafe context.pointee.streams[index]?.pointee.discard = AVDISCARD_ALL
    }
  }

  /// The current content of the queues.
  var waiting: (packets: Int, bytes: Int) {
    queues.values.reduce((0, 0)) { ($0.0 + $1.count, $0.1 + $1.byteCount) }
  }

  /// Queues packets of a stream from now on.
  func use(_ index: Int) {
    if queues[index] == nil { queues[index] = PacketQueue() }
    unsafe stream(index)?.pointee.discard = AVDISCARD_DEFAULT
  }

  /// The declared duration of a file with this many streams (Matroska declares it); nil if there is none, or more streams. A duration
  /// estimated from the bitrate is ignored.
  func declaredDuration(streams: Int) -> Int64? {
    guard let context = unsafe context, unsafe context.pointee.nb_streams == UInt32(streams),
      unsafe context.pointee.duration_estimation_method != AVFMT_DURATION_FROM_BITRATE,
      unsafe context.pointee.duration > 0
    else { return nil }
    return unsafe context.pointee.duration * 1_000
  }

  // MARK: Packets

  /// The next packet of any stream of a live stream; the caller frees it. nil at the end. Throws `library` with the library's code, for which
  /// `words` has its message.
  func nextOfAny() throws(NodeFault) -> UnsafeMutablePointer<AVPacket>? {
    guard let packet = unsafe av_packet_alloc() else {
      throw NodeFault(.library, code: millrace_averror_no_memory)
    }
    while true {
      millrace_av_clear_log()
      let status = unsafe av_read_frame(context, packet)
      if status >= 0 { return unsafe packet }
      if status == millrace_averror_again { continue }
      var unused: UnsafeMutablePointer<AVPacket>? = unsafe packet
      unsafe av_packet_free(&unused)
      if status == millrace_averror_eof { return nil }
      words.keep()
      throw NodeFault(.library, code: status)
    }
  }

  /// The next packet of a stream; the caller frees it. nil at the end, and if only packets of other streams were found so far: see
  /// `hasMore`.
  func next(_ index: Int) throws(NodeFault) -> UnsafeMutablePointer<AVPacket>? {
    if let other = separate[index] { return unsafe try other.next(index) }
    for _ in 0..<Self.maximumSkipped {
      if let packet = unsafe queues[index]?.take() { return unsafe packet }
      guard !hasEnded else { return nil }
      guard waiting.packets < Self.maximumQueued.packets && waiting.bytes < Self.maximumQueued.bytes else {
        return unsafe try separateReader(index).next(index)
      }
      try read()
    }
    return nil
  }

  /// True while a stream may have another packet.
  func hasMore(_ index: Int) -> Bool { separate[index]?.hasMore(index) ?? !hasEnded }

  /// Reads a stream separately from now on. Its queue is empty.
  private func separateReader(_ index: Int) throws(NodeFault) -> Demuxer {
    let other: Demuxer
    do throws(NodeProblem) { other = try Demuxer(source) } catch {
      refusal = error
      throw NodeFault(.gone)
    }
    other.use(index)
    // Skipped here and not inside the library, which would scan the whole file in one call.
    for stream in queues.keys where stream != index {
      unsafe other.stream(stream)?.pointee.discard = AVDISCARD_DEFAULT
    }
    var passed = 0
    while passed < counts[index] ?? 0 {
      guard var packet = unsafe try other.next(index).map({ unsafe Optional($0) }) else {
        guard other.hasMore(index) else { break }
        continue
      }
      unsafe av_packet_free(&packet)
      passed += 1
    }
    separate[index] = other
    queues[index] = nil
    unsafe stream(index)?.pointee.discard = AVDISCARD_ALL
    return other
  }

  /// Reads one packet into its queue.
  private func read() throws(NodeFault) {
    guard let packet = unsafe av_packet_alloc() else {
      throw NodeFault(.library, code: millrace_averror_no_memory)
    }
    var unused: UnsafeMutablePointer<AVPacket>? = unsafe packet
    let status = unsafe av_read_frame(context, packet)
    guard status >= 0 else {
      unsafe av_packet_free(&unused)
      if status == millrace_averror_again { return }
      // A read error fails the node; undecodable bytes count as the end.
      if status == millrace_averror(EIO) { throw NodeFault(.system, code: EIO) }
      if status != millrace_averror_eof {
        words.keep()
        endsInDamage = true
      }
      hasEnded = true
      return
    }
    isLastCorrupt = unsafe packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0
    let index = unsafe Int(packet.pointee.stream_index)
    guard let queue = queues[index] else {
      unsafe av_packet_free(&unused)
      return
    }
    counts[index, default: 0] += 1
    unsafe queue.put(packet)
  }
}

/// A queue of packets of one stream.
@safe
private final class PacketQueue {
  private var packets: [UnsafeMutablePointer<AVPacket>] = unsafe []
  private var taken = 0
  private(set) var byteCount = 0

  var count: Int {
    let all = unsafe packets.count
    return all - taken
  }

  func put(_ packet: UnsafeMutablePointer<AVPacket>) {
    if taken > 0 && count == 0 {
      unsafe packets.removeAll(keepingCapacity: true)
      taken = 0
    }
    unsafe packets.append(packet)
    unsafe byteCount += Int(packet.pointee.size)
  }

  func take() -> UnsafeMutablePointer<AVPacket>? {
    guard count > 0 else { return nil }
    let packet = unsafe packets[taken]
    taken += 1
    unsafe byteCount -= Int(packet.pointee.size)
    return unsafe packet
  }

  func clear() {
    while let packet = unsafe take() {
      var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
      unsafe av_packet_free(&packet)
    }
  }
}
