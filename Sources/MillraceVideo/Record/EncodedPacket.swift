internal import CFFmpeg
internal import MillraceCore

/// The tracks of a film.
enum FilmTrack: Int, CaseIterable, Sendable {
  case pictures, sound

  /// As events call it.
  var name: StaticString { self == .pictures ? "pictures" : "sound" }
}

/// What an encoder gave, with its time. May be handed from thread to thread; one at a time.
@safe
final class EncodedPacket: @unchecked Sendable {
  let track: FilmTrack
  /// When it is due, on the graph clock; encoders that hold no pictures back give them in the order of their times.
  let time: Nanoseconds
  /// A decoder may start here.
  let isKey: Bool
  let packet: UnsafeMutablePointer<AVPacket>

  /// Takes over what the encoder's packet holds.
  init(_ track: FilmTrack, at time: Nanoseconds, moving packet: UnsafeMutablePointer<AVPacket>) {
    guard let own = unsafe av_packet_alloc() else { fatalError("no memory for a packet") }
    unsafe av_packet_move_ref(own, packet)
    self.track = track
    self.time = time
    isKey = unsafe own.pointee.flags & AV_PKT_FLAG_KEY != 0
    unsafe self.packet = unsafe own
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
    unsafe av_packet_free(&packet)
  }

  /// Puts time and duration into a stream's time base, counted from an origin.
  func setTime(_ base: AVRational, origin: Nanoseconds, duration: Nanoseconds) {
    let nanosecond = AVRational(num: 1, den: 1_000_000_000)
    let place = av_rescale_q(time - origin, nanosecond, base)
    unsafe packet.pointee.pts = place
    unsafe packet.pointee.dts = place
    unsafe packet.pointee.duration = av_rescale_q(duration, nanosecond, base)
  }

  var byteCount: Int { unsafe Int(packet.pointee.size) }
}
