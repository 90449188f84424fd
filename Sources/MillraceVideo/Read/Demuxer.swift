internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// The packets of a file, stream by stream; or of a live stream, as they come. While one stream of a file is looked for, what the file
/// has of the other waits in a queue, up to a bound. Where they lie further apart, the one that is behind is read by itself, from the
/// file opened once more.
///
/// Blocks; one thread at a time.
@safe
final class Demuxer {
  /// Where the packets come from.
  struct Place: Sendable {
    /// As libavformat names it.
    var url: String
    /// An input device instead of a file, such as `lavfi`.
    var device: String?
    var options: [String: String] = [:]
    /// As messages name it.
    var name: String
    /// The same without quotes.
    var shownPath: String { name.hasPrefix("\"") ? String(name.dropFirst().dropLast()) : name }
    /// What to do when it cannot be opened.
    var cure: String?
    /// Of a live stream: what ends its waiting. Its packets are taken as they come, and nothing is looked into ahead.
    var bound: StreamBound?
    /// What is taken out of the library's words.
    var secrets = Secrets()
    /// Pixels of the largest picture that is decoded.
    var mostPixels = PictureHeader.mostPixels

    /// A file.
    init(file path: String, mostPixels: Int = PictureHeader.mostPixels) {
      self.mostPixels = mostPixels
      // The prefix keeps names such as "concat:..." from being taken for a protocol.
      url = "file:" + path
      options = SupportedContainer.options
      name = "\"\(path)\""
      cure = "check that it is whole, and a film or a picture"
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
    init(_ address: StreamAddress, options: [String: String], bound: StreamBound, mostPixels: Int) {
      self.mostPixels = mostPixels
      url = address.url
      name = address.name
      secrets = address.secrets
      self.options = options
      self.bound = bound
    }
  }

  let place: Place
  private(set) var context: UnsafeMutablePointer<AVFormatContext>?
  /// The file ended inside a packet, or was given up before its end.
  var isCut: Bool { endsInDamage || isLastCorrupt && hasEnded || apart.values.contains { $0.isCut } }
  private(set) var words = LibraryMessage()
  /// Why a stream could not be read by itself; nil: it could, or need not.
  private(set) var refusal: NodeProblem?
  private var queues: [Int: PacketQueue] = [:]
  /// Streams that are read by themselves.
  private var apart: [Int: Demuxer] = [:]
  /// Packets of each stream that were read so far.
  private var counts: [Int: Int] = [:]
  private var hasEnded = false
  private var endsInDamage = false
  /// The library marked the packet read last as one that the file has not all of.
  private var isLastCorrupt = false
  /// Packets that may wait, and bytes of them: a file in proper order needs a second of either, which of 8K is 25 MB.
  static let mostWaiting = (packets: 8_192, bytes: 64 << 20)
  /// Packets of other streams that one look for a stream passes over: some milliseconds of reading.
  private static let mostPassed = 256

  /// Opens a file or device and looks what streams it has.
  init(_ place: Place) throws(NodeProblem) {
    self.place = place
    millrace_av_clear_log()
    var format: UnsafePointer<AVInputFormat>?
    if let device = place.device {
      unsafe format = millrace_av_find_device(device)
      guard unsafe format != nil else { throw Self.noDevice(device) }
    }
    if let bound = place.bound {
      // Said, because finding it out waits for two kilobytes.
      unsafe format = av_find_input_format("flv")
      guard let made = unsafe avformat_alloc_context() else { fatalError("no memory for a stream") }
      unsafe made.pointee.flags |= AVFMT_FLAG_NOBUFFER
      unsafe bound.attach(to: made)
      unsafe context = made
    }
    var options: OpaquePointer?
    for (key, value) in place.options { unsafe av_dict_set(&options, key, value, 0) }
    let status = unsafe avformat_open_input(&context, place.url, format, &options)
    unsafe av_dict_free(&options)
    guard status >= 0 else {
      if let problem = FileMessages.exhaustion(-status, place.shownPath, for: .reading) { throw problem }
      if place.device == nil, place.bound == nil,
        let name = SupportedContainer.unknownName(place.url, status: status)
      {
        let refusal = SupportedContainer.refusal(name)
        throw problem(refusal.text, cure: refusal.cure)
      }
      throw problem("cannot be opened: \(reason(status))", cure: place.cure)
    }
    // Looking into a live stream takes seconds, and what it is its packets say by themselves.
    guard place.bound == nil else { return }
    try checkOnlyStream()
    let most = PictureBound.withEdges(place.mostPixels)
    let found = unsafe context.map { unsafe millrace_av_find_stream_info($0, most) } ?? 0
    guard found >= 0 else { throw problem("cannot be read: \(reason(found))", cure: place.cure) }
    discardAll()
  }

  deinit {
    for queue in queues.values { queue.clear() }
    unsafe avformat_close_input(&context)
  }

  /// Refuses a film of pictures that the container says are too large, before the library looks into them and forgets what it said. Where
  /// there are more streams of pictures, what is chosen of them is checked then.
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
      "FFmpeg's input device \"\(device)\" is not there" + (refusal.isEmpty ? "" : ": \(refusal)"),
      cure: "install libavdevice")
  }

  /// Says what is wrong with the place.
  func problem(_ text: String, cure: String?) -> NodeProblem {
    NodeProblem("\(place.name) \(text)", parameter: place.device == nil ? "path" : nil, cure: cure)
  }

  /// The library's line if it logged one, with the code's own text otherwise.
  func reason(_ code: Int32) -> String {
    words.keep()
    let described = LibraryMessage.describe(code)
    guard let line = words.text else { return place.secrets.removed(from: described) }
    // A protocol's line says what failed, and leaves out what the system said.
    let isMore = place.bound != nil && (1..<4_096).contains(-code) && !line.contains(described)
    return place.secrets.removed(from: isMore ? "\(line): \(described)" : line)
  }

  // MARK: Streams

  /// A stream.
  func stream(_ index: Int) -> UnsafeMutablePointer<AVStream>? {
    unsafe context?.pointee.streams[index]
  }

  /// The best stream of a kind and its decoder; nil when there is none.
  func best(
    _ kind: AVMediaType, beside other: Int = -1
  ) throws(NodeProblem) -> (index: Int, decoder: UnsafePointer<AVCodec>)? {
    var decoder: UnsafePointer<AVCodec>?
    let index = unsafe av_find_best_stream(context, kind, -1, Int32(other), &decoder, 0)
    if index == millrace_averror_decoder_not_found {
      throw problem("holds what this system has no decoder for", cure: "convert it to H.264 and AAC")
    }
    guard index >= 0, let decoder = unsafe decoder else { return nil }
    return unsafe (Int(index), decoder)
  }

  /// The container, as the libraries call it: `avi`, `mov,mp4,m4a,3gp,3g2,mj2`.
  var containerName: String {
    unsafe context.map { unsafe String(cString: $0.pointee.iformat.pointee.name) } ?? ""
  }

  /// What the streams are, such as `audio aac, subtitle subrip`.
  var streamNames: String { unsafe LibraryMessage.streams(of: context) }

  private func discardAll() {
    guard let context = unsafe context else { return }
    for index in unsafe 0..<Int(context.pointee.nb_streams) {
      unsafe context.pointee.streams[index]?.pointee.discard = AVDISCARD_ALL
    }
  }

  /// What waits now.
  var waiting: (packets: Int, bytes: Int) {
    queues.values.reduce((0, 0)) { ($0.0 + $1.count, $0.1 + $1.byteCount) }
  }

  /// Has packets of a stream kept from now on.
  func use(_ index: Int) {
    if queues[index] == nil { queues[index] = PacketQueue() }
    unsafe stream(index)?.pointee.discard = AVDISCARD_DEFAULT
  }

  /// How long a file of so many streams says it is as a whole (Matroska does); nil when it does not, or has more streams. A
  /// length reckoned from the bit rate is a guess, and not given.
  func announced(streams: Int) -> Int64? {
    guard let context = unsafe context, unsafe context.pointee.nb_streams == UInt32(streams),
      unsafe context.pointee.duration_estimation_method != AVFMT_DURATION_FROM_BITRATE,
      unsafe context.pointee.duration > 0
    else { return nil }
    return unsafe context.pointee.duration * 1_000
  }

  // MARK: Packets

  /// The next packet of a live stream, whichever of its streams it is of; the caller's to free. nil at the stream's end.
  /// Throws `library` with the library's code, for which `words` has its line.
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

  /// The next packet of a stream, which is the caller's to free; nil at the end, and where only other streams' came so far:
  /// `hasMore` tells.
  func next(_ index: Int) throws(NodeFault) -> UnsafeMutablePointer<AVPacket>? {
    if let other = apart[index] { return unsafe try other.next(index) }
    for _ in 0..<Self.mostPassed {
      if let packet = unsafe queues[index]?.take() { return unsafe packet }
      guard !hasEnded else { return nil }
      guard waiting.packets < Self.mostWaiting.packets && waiting.bytes < Self.mostWaiting.bytes else {
        return unsafe try part(index).next(index)
      }
      try read()
    }
    return nil
  }

  /// True while a stream may have another packet.
  func hasMore(_ index: Int) -> Bool { apart[index]?.hasMore(index) ?? !hasEnded }

  /// Reads a stream by itself from now on. Its queue is empty.
  private func part(_ index: Int) throws(NodeFault) -> Demuxer {
    let other: Demuxer
    do throws(NodeProblem) { other = try Demuxer(place) } catch {
      refusal = error
      throw NodeFault(.gone)
    }
    other.use(index)
    // Passed over here and not inside the library, which would look through all of the file in one call.
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
    apart[index] = other
    queues[index] = nil
    unsafe stream(index)?.pointee.discard = AVDISCARD_ALL
    return other
  }

  /// Reads one packet and puts it where it belongs.
  private func read() throws(NodeFault) {
    guard let packet = unsafe av_packet_alloc() else {
      throw NodeFault(.library, code: millrace_averror_no_memory)
    }
    var unused: UnsafeMutablePointer<AVPacket>? = unsafe packet
    let status = unsafe av_read_frame(context, packet)
    guard status >= 0 else {
      unsafe av_packet_free(&unused)
      if status == millrace_averror_again { return }
      // A disk that fails is a fault; bytes that make no sense any more are the end.
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

/// Packets of one stream in order.
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
