import CFFmpeg
import CMediaShim
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@Suite("the tests' stream server")
struct StreamServerTests {
  /// Plays a number of video packets of a stream; returns FFmpeg's status.
  private func play(_ url: String, pictures: Int) -> (status: Int32, seen: Int) {
    millrace_av_capture_log()
    var context: UnsafeMutablePointer<AVFormatContext>?
    var options: OpaquePointer?
    av_dict_set(&options, "rw_timeout", "120000000", 0)
    defer { av_dict_free(&options) }
    var status = avformat_open_input(&context, url, nil, &options)
    guard status >= 0 else { return (status, 0) }
    defer { avformat_close_input(&context) }
    var packet = av_packet_alloc()
    defer { av_packet_free(&packet) }
    var seen = 0
    while seen < pictures {
      status = av_read_frame(context, packet)
      guard status >= 0 else { break }
      let stream = context!.pointee.streams[Int(packet!.pointee.stream_index)]!
      if stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO { seen += 1 }
      av_packet_unref(packet)
    }
    return (status, seen)
  }

  @Test(
    "what is published is played, until it is not", .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp")
  )
  func playedBack() throws {
    let folder = TemporaryFolder()
    var video = TestVideo()
    video.pictures = 50
    video.sound = [Int16](repeating: 1_000, count: 96_000)
    video.write(to: folder.file("video.mp4"))
    let server = try #require(StreamServer())
    let stream = LiveStream(video: folder.file("video.mp4"), to: server.url("one"))
    let hasStarted = stream.waitForStart()
    #expect(hasStarted, "\(stream.problem ?? "")")
    let played = play(server.url("one"), pictures: 30)
    #expect(played.status >= 0 && played.seen == 30, "\(server.log)")
    server.stop()
    #expect(play(server.url("one"), pictures: 1).status < 0)
    #expect(server.start())
    stream.stop()
  }
}
