import CFFmpeg
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
