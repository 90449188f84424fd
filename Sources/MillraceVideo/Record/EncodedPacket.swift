internal import CFFmpeg
internal import MillraceCore

/// The tracks of a recording or stream.
enum MediaTrack: Int, CaseIterable, Sendable {
  case pictures, sound

  /// The name in events.
  var name: StaticString { self == .pictures ? "pictures" : "sound" }
}

/// An encoder's packet with its time. May be moved between threads; used by one at a time.
@safe
final class EncodedPacket: @unchecked Sendable {
  let track: MediaTrack
  /// When it is due, on the graph's clock; encoders without delay produce packets in order of time.
  let time: Nanoseconds
  /// True if a decoder can start here.
  let isKey: Bool
  let packet: UnsafeMutablePointer<AVPacket>

  /// Takes over the content of the encoder's packet.
  init(_ track: MediaTrack, at time: Nanoseconds, moving packet: UnsafeMutablePointer<AVPacket>) {
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

  /// Sets time and duration in a stream's time base, relative to an origin.
  func setTime(_ base: AVRational, origin: Nanoseconds, duration: Nanoseconds) {
    let nanosecond = AVRational(num: 1, den: 1_000_000_000)
    let place = av_rescale_q(time - origin, nanosecond, base)
    unsafe packet.pointee.pts = place
    unsafe packet.pointee.dts = place
    unsafe packet.pointee.duration = av_rescale_q(duration, nanosecond, base)
  }

  var byteCount: Int { unsafe Int(packet.pointee.size) }
}
