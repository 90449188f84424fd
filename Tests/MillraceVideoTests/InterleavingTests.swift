import CFFmpeg
import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Files whose audio and pictures are interleaved further apart than the queues hold.
@Suite("badly interleaved audio and pictures")
struct InterleavingTests {
  private let folder = TemporaryFolder()
  private static let tone = (0..<48_000).map { Int16(($0 % 100) * 100) }

  /// Where the audio of the video's first second is stored.
  enum Order: CaseIterable, Sendable {
    case soundFirst, soundLast
  }

  /// 75 s of pictures, and one second of audio before or after all of them.
  private func makeVideo(_ order: Order) -> String {
    var video = TestVideo()
    (video.width, video.height, video.rate, video.pictures) = (16, 16, 120, 9_000)
    video.write(to: folder.file("pictures.flv"))
    (video.rate, video.pictures, video.sound) = (25, 5, Self.tone)
    video.write(to: folder.file("sound.flv"))
    let pictures = contents(folder.file("pictures.flv"))
    // The flags of a file with both (Adobe Flash Video File Format Specification 10.1, E.2).
    var bytes = Array(pictures.prefix(13))
    bytes[4] = 5
    let (shown, heard) = (Self.tags(pictures, 9), Self.tags(contents(folder.file("sound.flv")), 8))
    let path = folder.file("video.flv")
    put(bytes + (order == .soundFirst ? heard + shown : shown + heard), at: path)
    return path
  }

  /// The tags of one kind in an FLV file: 8 is audio, 9 video.
  private static func tags(_ file: [UInt8], _ kind: UInt8) -> [UInt8] {
    var (kept, place) = ([UInt8](), 13)
    while place + 11 <= file.count {
      let size = Int(file[place + 1]) << 16 | Int(file[place + 2]) << 8 | Int(file[place + 3])
      if file[place] == kind { kept += file[place..<place + 15 + size] }
      place += 15 + size
    }
    return kept
  }

  private func take(_ bench: NodeBench) throws -> (pictures: [Nanoseconds], samples: Int, first: Nanoseconds)
  {
    var (pictures, samples, first) = ([Nanoseconds](), 0, Nanoseconds.max)
    bench.hold()
    while !bench.hasEnded {
      try bench.run(calls: 500)
      while let packet = bench.take() { pictures.append(packet.timestamp) }
      for packet in bench.packets("audio") {
        first = min(first, packet.timestamp)
        samples += packet.int16.count
      }
    }
    return (pictures, samples, first)
  }

  @Test("both are played to the end", arguments: Order.allCases)
  func played(order: Order) throws {
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(makeVideo(order))], outputs: ["out", "audio", "events"])
    let all = try take(bench)
    #expect(all.pictures.count == 9_000)
    #expect(all.pictures == all.pictures.sorted())
    #expect((48_000...52_000).contains(all.samples) && all.first < 100_000_000, "\(all.samples) \(all.first)")
    #expect(bench.close() == [])
  }

  @Test(
    "do not wait beyond the bound, whichever is asked for first", arguments: Order.allCases, [true, false])
  func bound(order: Order, isSoundFirst: Bool) throws {
    let demuxer = try Demuxer(Demuxer.Source(file: makeVideo(order)))
    let (video, _) = try #require(try demuxer.best(AVMEDIA_TYPE_VIDEO))
    let (audio, _) = try #require(try demuxer.best(AVMEDIA_TYPE_AUDIO))
    demuxer.use(video)
    demuxer.use(audio)
    var counts = [video: 0, audio: 0]
    for index in isSoundFirst ? [audio, video] : [video, audio] {
      while demuxer.hasMore(index) || demuxer.waiting.packets > 0 {
        #expect(demuxer.waiting.packets <= Demuxer.maximumQueued.packets)
        guard var packet = try demuxer.next(index).map(Optional.some) else {
          guard demuxer.hasMore(index) else { break }
          continue
        }
        #expect(Int(packet!.pointee.stream_index) == index)
        av_packet_free(&packet)
        counts[index, default: 0] += 1
      }
    }
    #expect(counts[video] == 9_000 && (46...50).contains(counts[audio] ?? 0), "\(counts)")
  }

  /// A video whose audio follows 96 MiB of pictures, few and large. The pictures are holes in the file: they are not decoded.
  private func largePictures(of size: Int, count: Int) throws -> String {
    var video = TestVideo()
    (video.width, video.height, video.pictures, video.sound) = (16, 16, 5, Self.tone)
    video.write(to: folder.file("small.flv"))
    let small = contents(folder.file("small.flv"))
    var beginning = Array(small.prefix(13))
    beginning[4] = 5
    let path = folder.file("large.flv")
    let sound = Self.tags(small, 8)
    // The first audio tag configures the decoder: it comes early, so that the stream is known.
    let configuration = 15 + (Int(sound[1]) << 16 | Int(sound[2]) << 8 | Int(sound[3]))
    put(beginning + sound.prefix(configuration) + Self.tags(small, 9), at: path)
    let file = try #require(fopen(path, "a"))
    defer { fclose(file) }
    func write(_ bytes: [UInt8]) { fwrite(bytes, 1, bytes.count, file) }
    func bigEndian(_ value: Int, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }
    for number in 0..<count {
      // A picture: size, time in ms with the highest byte last, and stream 0; then the header of an H.264 key frame (E.4.1, E.4.3).
      write([9] + bigEndian(size, 3) + bigEndian(200 + 40 * number, 3) + [0, 0, 0, 0] + [0x17, 1, 0, 0, 0])
      fflush(file)
      #expect(ftruncate(fileno(file), ftello(file) + off_t(size - 5)) == 0)
      fseek(file, 0, SEEK_END)
      write(bigEndian(size + 11, 4))
    }
    write(Array(sound.dropFirst(configuration)))
    return path
  }

  @Test("few large packets do not wait beyond the bound in bytes")
  func boundInBytes() throws {
    let size = 8 << 20
    let demuxer = try Demuxer(Demuxer.Source(file: largePictures(of: size, count: 12)))
    let (video, _) = try #require(try demuxer.best(AVMEDIA_TYPE_VIDEO))
    let (audio, _) = try #require(try demuxer.best(AVMEDIA_TYPE_AUDIO))
    demuxer.use(video)
    demuxer.use(audio)
    var (sounds, most) = (0, 0)
    while demuxer.hasMore(audio) {
      if var packet = try demuxer.next(audio).map(Optional.some) {
        sounds += 1
        av_packet_free(&packet)
      }
      most = max(most, demuxer.waiting.bytes)
    }
    #expect((46...50).contains(sounds), "\(sounds) packets of sound")
    #expect(
      (Demuxer.maximumQueued.bytes..<Demuxer.maximumQueued.bytes + size).contains(most), "\(most) bytes")
    #expect(demuxer.waiting.packets < 20)
  }

  @Test("queues for sending and recording are bounded in bytes, and restart with a key frame")
  func queues() {
    func packet(_ track: MediaTrack, at time: Nanoseconds, isKey: Bool, bytes: Int) -> EncodedPacket {
      var made = av_packet_alloc()
      av_new_packet(made, Int32(bytes))
      if isKey { made!.pointee.flags |= AV_PKT_FLAG_KEY }
      defer { av_packet_free(&made) }
      return EncodedPacket(track, at: time, moving: made!)
    }
    var push = PushQueue(limit: .milliseconds(2_000))
    // All at the same time, so that a limit in time does not apply.
    for number in 0..<40 { push.put(packet(.pictures, at: 5, isKey: number % 10 == 0, bytes: 4 << 20)) }
    var (bytes, isFirst) = (0, true)
    while let packet = push.take() {
      #expect(!isFirst || packet.isKeyPicture)
      isFirst = false
      bytes += packet.byteCount
    }
    #expect(bytes > 0 && bytes <= PushQueue.maximumBytes && push.dropped.pictures > 0)
    var tracks = TrackInterleaver(sound: true, patience: .milliseconds(2_000))
    var count = 0
    while tracks.hasRoom(.pictures, ahead: .milliseconds(10_000)), count < 1_000 {
      tracks.put(packet(.pictures, at: Nanoseconds(count), isKey: true, bytes: 4 << 20))
      tracks.note(.pictures, upTo: Nanoseconds(count))
      count += 1
    }
    #expect((16...18).contains(count) && tracks.hasRoom(.sound, ahead: .milliseconds(10_000)))
    tracks.end(.sound)
    while tracks.next() != nil {}
    #expect(tracks.hasRoom(.pictures, ahead: .milliseconds(10_000)))
  }
}
