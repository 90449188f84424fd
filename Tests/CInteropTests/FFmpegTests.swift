import CFFmpeg
import CMediaShim
import Glibc
import Testing

/// A WAV file of 480 silent samples at 16 kHz mono s16, under a name of its own, removed after the body.
private func withWAV(_ body: (String) throws -> Void) throws {
  var header = Array("RIFF".utf8) + little(36 + 960) + Array("WAVEfmt ".utf8) + little(16)
  header += [1, 0, 1, 0] + little(16_000) + little(32_000) + [2, 0, 16, 0]
  header += Array("data".utf8) + little(960) + [UInt8](repeating: 0, count: 960)
  try withFile(header, body)
}

private func little(_ value: UInt32) -> [UInt8] {
  (0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
}

private func withFile(_ bytes: [UInt8], _ body: (String) throws -> Void) throws {
  var name = Array("/tmp/millrace-ffmpeg-XXXXXX.wav".utf8CString)
  let file = mkstemps(&name, 4)
  try #require(file >= 0)
  let path = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  defer { unlink(path) }
  #expect(write(file, bytes, bytes.count) == bytes.count)
  close(file)
  try body(path)
}

@Suite("FFmpeg")
struct FFmpegTests {
  @Test("error codes have the values FFmpeg's tags and errno give them")
  func errorCodes() {
    func tag(_ a: UInt8, _ name: String) -> Int32 {
      let letters = [a] + Array(name.utf8)
      return -(0..<4).reduce(Int32(0)) { $0 | Int32(letters[$1]) << Int32($1 * 8) }
    }
    #expect(millrace_averror_eof == tag(UInt8(ascii: "E"), "OF "))
    #expect(millrace_averror_invalid_data == tag(UInt8(ascii: "I"), "NDA"))
    #expect(millrace_averror_exit == tag(UInt8(ascii: "E"), "XIT"))
    #expect(millrace_averror_stream_not_found == tag(0xf8, "STR"))
    #expect(millrace_averror_demuxer_not_found == tag(0xf8, "DEM"))
    #expect(millrace_averror_decoder_not_found == tag(0xf8, "DEC"))
    #expect(millrace_averror_muxer_not_found == tag(0xf8, "MUX"))
    #expect(millrace_averror_encoder_not_found == tag(0xf8, "ENC"))
    #expect(millrace_averror_protocol_not_found == tag(0xf8, "PRO"))
    #expect(millrace_averror_option_not_found == tag(0xf8, "OPT"))
    #expect(millrace_averror_unsupported == tag(UInt8(ascii: "P"), "AWE"))
    #expect(millrace_averror_again == -EAGAIN)
    #expect(millrace_averror_no_memory == -ENOMEM)
    #expect(millrace_averror(ENOENT) == -2)
    #expect(millrace_averror_errno(-2) == ENOENT)
  }

  @Test("times and sample formats have FFmpeg's values")
  func constants() {
    #expect(millrace_av_no_timestamp == Int64.min)
    #expect(millrace_av_time_base().num == 1 && millrace_av_time_base().den == 1_000_000)
    #expect(millrace_av_sample_s16 == AV_SAMPLE_FMT_S16.rawValue)
    #expect(millrace_av_sample_s16_planar == AV_SAMPLE_FMT_S16P.rawValue)
    #expect(millrace_av_sample_f32 == AV_SAMPLE_FMT_FLT.rawValue)
    #expect(millrace_av_sample_f32_planar == AV_SAMPLE_FMT_FLTP.rawValue)
    #expect(millrace_av_sample_none == -1)
  }

  @Test("a default layout has the channels asked for")
  func layouts() {
    var mono = millrace_av_default_layout(1)
    var stereo = millrace_av_default_layout(2)
    #expect(mono.nb_channels == 1)
    #expect(stereo.nb_channels == 2)
    var other = millrace_av_default_layout(1)
    #expect(millrace_av_layouts_equal(&mono, &other))
    #expect(!millrace_av_layouts_equal(&mono, &stereo))
  }

  @Test("a layout opens the sample-rate converter")
  func converter() {
    var context: OpaquePointer?
    // From 5.1 on FFmpeg takes both layouts as variables, and Swift lends a variable once in a call.
    var mono = millrace_av_default_layout(1)
    var same = mono
    let s16 = AVSampleFormat(rawValue: millrace_av_sample_s16)
    #expect(swr_alloc_set_opts2(&context, &mono, s16, 16_000, &same, s16, 48_000, 0, nil) == 0)
    #expect(swr_init(context) == 0)
    swr_free(&context)
  }

  @Test("an error code speaks in words, an unknown one by its number")
  func errorText() {
    #expect(String(cString: millrace_av_error_text(millrace_averror_eof)) == "End of file")
    #expect(String(cString: millrace_av_error_text(millrace_averror(ENOENT))) == "No such file or directory")
    #expect(String(cString: millrace_av_error_text(-987_654_321)).contains("987654321"))
  }
}

@Suite("FFmpeg log capture")
struct FFmpegLogTests {
  init() {
    millrace_av_capture_log()
    millrace_av_clear_log()
  }

  private var last: String { String(cString: millrace_av_last_log()) }

  private func log(_ level: Int32, _ text: String) {
    withVaList([]) { av_vlog(nil, level, text, $0) }
  }

  @Test("the last error is kept without its line end, until it is cleared")
  func keepsLast() {
    log(AV_LOG_ERROR, "first\n")
    log(AV_LOG_ERROR, "second\n")
    #expect(last == "second")
    millrace_av_clear_log()
    #expect(last == "")
  }

  @Test("what is less than an error is not kept")
  func level() {
    log(AV_LOG_WARNING, "only a warning\n")
    #expect(last == "")
  }

  @Test("a line built by two calls is kept whole")
  func twoParts() {
    log(AV_LOG_ERROR, "one half, ")
    log(AV_LOG_ERROR, "the other\n")
    #expect(last == "one half, the other")
  }

  @Test("a long line is cut to the buffer, and the next one starts anew")
  func long() {
    log(AV_LOG_ERROR, String(repeating: "x", count: 2000) + "\n")
    #expect(last == String(repeating: "x", count: 511))
    log(AV_LOG_ERROR, "short\n")
    #expect(last == "short")
  }

  @Test("what another thread logs is not seen here")
  func perThread() {
    log(AV_LOG_ERROR, "mine\n")
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { _ in
        withVaList([]) { av_vlog(nil, AV_LOG_ERROR, "theirs\n", $0) }; return nil
      }, nil)
    pthread_join(thread, nil)
    #expect(last == "mine")
  }

  @Test("a damaged file explains itself")
  func damaged() throws {
    let bytes =
      Array("RIFF".utf8) + little(76) + Array("WAVEdata".utf8) + little(64) + [UInt8](repeating: 0, count: 64)
    try withFile(bytes) { path in
      var context: UnsafeMutablePointer<AVFormatContext>?
      #expect(avformat_open_input(&context, path, nil, nil) == millrace_averror_invalid_data)
      #expect(last.contains("fmt"))
    }
  }
}

@Suite("bounded FFmpeg calls")
struct FFmpegBoundTests {
  /// Opens a good file under a bound and returns what FFmpeg said.
  private func open(_ path: String, under bound: OpaquePointer) -> Int32 {
    var context = avformat_alloc_context()
    millrace_av_bound_attach(bound, context!)
    let status = avformat_open_input(&context, path, nil, nil)
    if status == 0 { avformat_close_input(&context) }
    return status
  }

  @Test("an open under a bound not reached succeeds, under one that is reached it leaves early")
  func open() throws {
    let bound = try #require(millrace_av_bound_new())
    defer { millrace_av_bound_free(bound) }
    try withWAV { path in
      #expect(open(path, under: bound) == 0)
      millrace_av_bound_set_deadline(bound, 60_000_000_000)
      #expect(open(path, under: bound) == 0)
      millrace_av_bound_set_deadline(bound, 0)
      #expect(open(path, under: bound) == millrace_averror_exit)
      millrace_av_bound_set_deadline(bound, -1)
      #expect(open(path, under: bound) == 0)
      millrace_av_bound_cancel(bound)
      #expect(open(path, under: bound) == millrace_averror_exit)
    }
  }

  @Test("a new deadline does not take a cancellation back, a reset does")
  func cancelStays() throws {
    let bound = try #require(millrace_av_bound_new())
    defer { millrace_av_bound_free(bound) }
    millrace_av_bound_cancel(bound)
    millrace_av_bound_set_deadline(bound, 60_000_000_000)
    #expect(millrace_av_bound_is_reached(bound))
    millrace_av_bound_reset(bound)
    #expect(!millrace_av_bound_is_reached(bound))
  }

  @Test("a deadline too far to count is none")
  func farDeadline() throws {
    let bound = try #require(millrace_av_bound_new())
    defer { millrace_av_bound_free(bound) }
    millrace_av_bound_set_deadline(bound, Int64.max)
    #expect(!millrace_av_bound_is_reached(bound))
  }
}
