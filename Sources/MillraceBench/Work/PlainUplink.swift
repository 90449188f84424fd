import COgg
import COpus
import Glibc
import MillraceDSP

/// The floor of the uplink: one thread, one loop, and the library calls that the nodes make.
@safe
struct PlainUplink: ~Copyable {
  /// 20 ms at 48 kHz.
  private static let inputFrame = 960
  /// 20 ms at 16 kHz.
  private static let frame = 320
  /// Largest Opus packet of one frame in bytes (RFC 6716 section 3.2.1), with its TOC byte.
  static let packetBytes = 1_276
  /// Samples in a page at 48 kHz: 200 ms.
  private static let pageSamples = 9_600

  private let encoder: OpaquePointer
  private let output: Int32
  private var stream = unsafe ogg_stream_state()
  private var page = unsafe ogg_page()
  private var lookahead: opus_int32 = 0
  private var packetNumber: Int64 = 0
  private var granule: Int64 = 0
  private var sincePage = 0
  private var pcm: [Int16] = []
  private var packet = [UInt8](repeating: 0, count: packetBytes)
  /// The previous packet, written once it is known whether it is the last.
  private var held: [UInt8] = []

  static func run(from input: String, to output: String) throws {
    var uplink = try PlainUplink(output)
    try uplink.work(input)
  }

  private init(_ path: String) throws {
    let encoder = try unsafe makeUplinkEncoder()
    let output = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    guard output >= 0 else { throw MeasurementProblem("cannot write \"\(path)\" (errno \(errno))") }
    self.output = output
    unsafe self.encoder = encoder
    _ = unsafe millrace_opus_encoder_get_lookahead(encoder, &lookahead)
    // The serial number of the node named "out", so that the files can be compared byte by byte.
    let serial = "out".utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    unsafe ogg_stream_init(&stream, Int32(bitPattern: serial))
    pcm.reserveCapacity(4 * Self.frame)
    held.reserveCapacity(Self.packetBytes)
  }

  deinit {
    unsafe opus_encoder_destroy(encoder)
    close(output)
    var stream = unsafe stream
    unsafe ogg_stream_clear(&stream)
  }

  private mutating func work(_ path: String) throws {
    let input = unsafe open(path, O_RDONLY)
    guard input >= 0 else { throw MeasurementProblem("cannot read \"\(path)\" (errno \(errno))") }
    defer { close(input) }
    // Skip the header that `Sound.write` writes.
    lseek(input, 44, SEEK_SET)
    var resampler = try Resampler(from: 48_000, to: 16_000, alignment: .compensated)
    var meter = LevelMeter(windowFrames: 1_600)
    var loudest = 0.0
    var samples = [Int16](repeating: 0, count: Self.inputFrame)
    var room = [Int16](repeating: 0, count: Self.frame + 1)
    writeHeaders()
    var total = 0
    while true {
      let bytes = unsafe samples.withUnsafeMutableBytes { unsafe read(input, $0.baseAddress, $0.count) }
      var span = room.mutableSpan
      let count =
        bytes > 0
        ? resampler.process(samples.span.extracting(0..<bytes / 2), into: &span).produced
        : resampler.flush(into: &span)
      if bytes <= 0 && count == 0 { break }
      meter.measure(room.span.extracting(0..<count)) { loudest = max(loudest, $0.peak) }
      pcm.append(contentsOf: room[..<count])
      total += count
      while pcm.count >= Self.frame { try encodeFrame() }
    }
    use(loudest)
    // Push the look-ahead through, so that the encoder returns its last samples.
    let wanted = total + Int(lookahead)
    let padding = (Self.frame - wanted % Self.frame) % Self.frame
    pcm.append(contentsOf: repeatElement(0, count: Int(lookahead) + padding))
    while pcm.count >= Self.frame { try encodeFrame() }
    writeHeld(padding: padding, isLast: true)
  }

  private mutating func encodeFrame() throws {
    let count = unsafe opus_encode(encoder, pcm, Int32(Self.frame), &packet, opus_int32(Self.packetBytes))
    guard count > 0 else { throw MeasurementProblem("libopus refused a frame (\(count))") }
    pcm.removeFirst(Self.frame)
    if !held.isEmpty { writeHeld(padding: 0, isLast: false) }
    held.removeAll(keepingCapacity: true)
    held.append(contentsOf: packet[..<Int(count)])
  }

  private mutating func writeHeld(padding: Int, isLast: Bool) {
    granule += Int64(Self.frame * 3)
    sincePage += Self.frame * 3
    add(held, granule: granule - Int64(padding * 3), isLast: isLast)
    writePages(isForced: isLast || sincePage >= Self.pageSamples)
  }

  // MARK: Ogg

  /// The two headers of RFC 7845 sections 5.1 and 5.2, each on a page of its own.
  private mutating func writeHeaders() {
    let preSkip = Int(lookahead) * 3
    let rate: [UInt8] = [0x80, 0x3E, 0, 0]
    let head =
      Array("OpusHead".utf8) + [1, 1, UInt8(preSkip & 0xFF), UInt8(preSkip >> 8)] + rate + [0, 0, 0]
    add(head, granule: 0, isFirst: true)
    writePages(isForced: true)
    add(Array("OpusTags".utf8) + [8, 0, 0, 0] + Array("millrace".utf8) + [0, 0, 0, 0], granule: 0)
    writePages(isForced: true)
  }

  private mutating func add(_ bytes: [UInt8], granule: Int64, isFirst: Bool = false, isLast: Bool = false) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      var packet = unsafe ogg_packet(
        packet: UnsafeMutablePointer(mutating: buffer.baseAddress), bytes: buffer.count,
        b_o_s: isFirst ? 1 : 0,
        e_o_s: isLast ? 1 : 0, granulepos: granule, packetno: packetNumber)
      unsafe ogg_stream_packetin(&stream, &packet)
    }
    packetNumber += 1
  }

  private mutating func writePages(isForced: Bool) {
    while unsafe (isForced
      ? ogg_stream_flush(&stream, &page) : ogg_stream_pageout_fill(&stream, &page, 60_000)) != 0
    {
      sincePage = 0
      _ = unsafe write(output, page.header, page.header_len)
      _ = unsafe write(output, page.body, page.body_len)
    }
  }
}

/// The encoder of every measured uplink: 16 kHz, speech, 24 kb/s, complexity 5, constrained variable bitrate.
func makeUplinkEncoder() throws -> OpaquePointer {
  guard let encoder = unsafe opus_encoder_create(16_000, 1, OPUS_APPLICATION_VOIP, nil) else {
    throw MeasurementProblem("libopus cannot create an encoder")
  }
  _ = unsafe millrace_opus_encoder_set_bitrate(encoder, 24_000)
  _ = unsafe millrace_opus_encoder_set_complexity(encoder, 5)
  _ = unsafe millrace_opus_encoder_set_vbr(encoder, 1)
  _ = unsafe millrace_opus_encoder_set_vbr_constraint(encoder, 1)
  return unsafe encoder
}
