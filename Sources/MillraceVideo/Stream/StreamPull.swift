internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// One connection to a live stream, from the attempt to the end. Blocks; confined to one thread.
struct StreamPull {
  /// What it delivers.
  enum Piece {
    case picture(PulledPicture)
    case sound(StreamSound)
    /// This many more packets could not be decoded.
    case damage(Int)
  }

  /// A decoded stream of the connection.
  private struct Track {
    let decoder: StreamDecoder
    /// nil: pictures.
    let converter: SoundConverter?
  }

  private let settings: PullThread.Settings
  private let bound: StreamInterrupt
  private let connection: Int
  private var demuxer: Demuxer?
  private var tracks: [Int: Track] = [:]
  private var clock = StreamClock()
  private var epoch = 0
  private var reportedDamage = 0
  private var hasCome = false
  /// True once something was decoded.
  private(set) var hasGiven = false

  init(_ settings: PullThread.Settings, bound: StreamInterrupt, connection: Int) {
    self.settings = settings
    self.bound = bound
    self.connection = connection
  }

  /// Low-latency options: data is passed on at once, the server is asked for no buffer, and nothing is probed ahead (measured against other
  /// settings on a local server: first picture after 155 ms instead of 3 s).
  private var options: [String: String] {
    settings.address.options(timeout: settings.timeout).merging(["rtmp_buffer": "0"]) { $1 }
  }

  /// Connects and passes on what arrives, until the end; returns why it ended.
  mutating func run(
    whileTrue goesOn: () -> Bool, came: () -> Void, give: (Piece) -> Void
  ) -> String {
    bound.allow(settings.timeout)
    do throws(NodeProblem) {
      demuxer = try Demuxer(
        Demuxer.Source(settings.address, options: options, bound: bound, mostPixels: settings.mostPixels))
    } catch {
      return bound.isReached ? silence : settings.address.cause ?? error.text
    }
    guard let demuxer else { return silence }
    do throws(NodeFault) {
      while goesOn() {
        bound.allow(settings.timeout)
        guard let packet = unsafe try demuxer.nextOfAny() else { return "the stream ended" }
        var given: UnsafeMutablePointer<AVPacket>? = unsafe packet
        defer { unsafe av_packet_free(&given) }
        if !hasCome {
          hasCome = true
          came()
        }
        unsafe try take(packet, from: demuxer, give)
      }
    } catch {
      if bound.isReached { return silence }
      if error.reason == .custom, error.code == PictureLimit.fault {
        return "it has \(PictureLimit.text(PictureLimit.size(error), atMost: settings.mostPixels))"
      }
      if error.reason == .custom { return "it uses a codec for which this system has no decoder" }
      return demuxer.reason(error.code)
    }
    return silence
  }

  private var silence: String {
    "no data from \(settings.address.name) for \(settings.timeout / 1_000_000) ms"
  }

  /// Decodes a packet and passes on the result.
  private mutating func take(
    _ packet: UnsafePointer<AVPacket>, from demuxer: Demuxer, _ give: (Piece) -> Void
  ) throws(NodeFault) {
    let arrival = Clock(.realtime).now
    let index = unsafe Int(packet.pointee.stream_index)
    guard let track = try track(index, of: demuxer) else { return }
    if let time = unsafe demuxer.time(of: packet), !clock.note(time, arrival: arrival) { epoch += 1 }
    defer { reportDamage(give) }
    unsafe try track.decoder.give(packet)
    while try track.decoder.receive() {
      let streamTime = track.decoder.time ?? arrival
      if let converter = track.converter {
        let delay = converter.delay
        var bytes: [UInt8] = []
        guard unsafe converter.convert(UnsafePointer(track.decoder.frame), into: &bytes) != nil else {
          throw NodeFault(.custom)
        }
        let first = streamTime &- delay
        give(
          .sound(
            StreamSound(
              bytes: bytes, time: clock.time(first), streamTime: first, connection: connection << 16 | epoch))
        )
      } else if let picture = DecodedPicture(track.decoder, time: clock.time(streamTime)) {
        let messages = unsafe UserData.all(of: picture.frame)
        give(.picture(PulledPicture(picture: picture, messages: messages)))
      }
      hasGiven = true
    }
  }

  private mutating func reportDamage(_ give: (Piece) -> Void) {
    let damage = tracks.values.reduce(0) { $0 + $1.decoder.damageCount }
    guard damage > reportedDamage else { return }
    give(.damage(damage - reportedDamage))
    reportedDamage = damage
  }

  /// The decoder of a stream, made when its first packet arrives, since a live stream is not described before that. nil for unwanted
  /// streams.
  private mutating func track(_ index: Int, of demuxer: Demuxer) throws(NodeFault) -> Track? {
    if let track = tracks[index] { return track }
    guard let parameters = unsafe demuxer.stream(index)?.pointee.codecpar else { return nil }
    let kind = unsafe parameters.pointee.codec_type
    guard kind == AVMEDIA_TYPE_VIDEO || kind == AVMEDIA_TYPE_AUDIO && settings.sound != nil else {
      return nil
    }
    let size = unsafe (Int(parameters.pointee.width), Int(parameters.pointee.height))
    guard PictureLimit.allows(size, atMost: settings.mostPixels) else { throw PictureLimit.fault(size) }
    guard let codec = unsafe avcodec_find_decoder(parameters.pointee.codec_id) else {
      throw NodeFault(.custom)
    }
    do throws(NodeProblem) {
      let sound = kind == AVMEDIA_TYPE_AUDIO ? settings.sound : nil
      let track = Track(
        decoder: unsafe try StreamDecoder(demuxer, index, codec, threads: 1),
        converter: sound.map { SoundConverter(rate: $0.rate, channels: $0.channels, sample: $0.sample) })
      tracks[index] = track
      return track
    } catch { throw NodeFault(.custom) }
  }
}

extension Demuxer {
  /// When a packet is due in stream time; nil if unknown.
  func time(of packet: UnsafePointer<AVPacket>) -> Nanoseconds? {
    guard let stream = unsafe stream(Int(packet.pointee.stream_index)) else { return nil }
    let dts = unsafe packet.pointee.dts
    let stamp = unsafe dts == millrace_av_no_timestamp ? packet.pointee.pts : dts
    guard stamp != millrace_av_no_timestamp else { return nil }
    return unsafe av_rescale_q(
      stamp, stream.pointee.time_base, AVRational(num: 1, den: 1_000_000_000))
  }
}
