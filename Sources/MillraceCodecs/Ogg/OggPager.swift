internal import COgg

/// Packs the packets of one logical stream into Ogg pages (RFC 3533) with libogg. Allocates only until its buffers have reached their
/// final size.
@safe
struct OggPager: ~Copyable {
  private let stream: UnsafeMutablePointer<ogg_stream_state>
  private let page: UnsafeMutablePointer<ogg_page>
  private var packetNumber: Int64 = 0
  /// Pages completed so far.
  private(set) var pageCount = 0

  /// Size at which a page is completed without being forced; a page holds at most 65,025 bytes.
  private static let fullPage: Int32 = 60_000

  init(serial: Int32) {
    unsafe stream = .allocate(capacity: 1)
    unsafe page = .allocate(capacity: 1)
    unsafe page.initialize(to: ogg_page())
    unsafe stream.initialize(to: ogg_stream_state())
    _ = unsafe ogg_stream_init(stream, serial)
  }

  deinit {
    _ = unsafe ogg_stream_clear(stream)
    unsafe stream.deallocate()
    unsafe page.deallocate()
  }

  /// Adds a packet; `granule` is the position at its end, at 48 kHz.
  mutating func add(_ bytes: Span<UInt8>, granule: Int64, isFirst: Bool = false, isLast: Bool = false) {
    let number = packetNumber
    packetNumber += 1
    unsafe bytes.withUnsafeBufferPointer { buffer in
      // libogg copies the bytes and does not modify them; the C type merely lacks the const.
      var packet = unsafe ogg_packet(
        packet: UnsafeMutablePointer(mutating: buffer.baseAddress), bytes: buffer.count,
        b_o_s: isFirst ? 1 : 0,
        e_o_s: isLast ? 1 : 0, granulepos: granule, packetno: number)
      _ = unsafe ogg_stream_packetin(stream, &packet)
    }
  }

  /// Completes a page: a full one or, with `isForced`, whatever is pending. False if there is none.
  mutating func cutPage(isForced: Bool) -> Bool {
    let found =
      unsafe isForced ? ogg_stream_flush(stream, page) : ogg_stream_pageout_fill(stream, page, Self.fullPage)
    if found == 0 { return false }
    pageCount += 1
    return true
  }

  /// The header of the latest page. Valid until the next call of `add` or `cutPage`.
  @unsafe
  var header: UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: page.pointee.header, count: page.pointee.header_len)
  }

  /// The body of the latest page. Valid as long as `header`.
  @unsafe
  var body: UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: page.pointee.body, count: page.pointee.body_len)
  }
}
