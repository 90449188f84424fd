internal import CFFmpeg
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// A film that grows in a file. Blocks; bulk lane; one thread at a time.
///
/// Nothing is touched before `begin`: what the file held until then goes with the first picture, not with a graph that never starts.
@safe
final class FilmFile {
  let path: String
  /// What can be played from the disk, at least.
  private(set) var safe: Nanoseconds = 0
  private let container: MediaContainer

  private struct Stream {
    var index: Int
    /// What a packet lasts.
    var duration: Nanoseconds
    /// What the container wants added to the times.
    var shift: Nanoseconds = 0
  }
  private let tracks: [FilmTrack: Stream]
  /// A picture whose length is not known before the next: MP4 has lengths where others have times.
  private var held: EncodedPacket?
  private let holds: Bool
  /// Up to when there is something in it.
  private var front: Nanoseconds = 0
  private var origin: Nanoseconds = 0

  /// Opens a file for the encoders' streams. The path must have been checked and claimed.
  init(
    _ path: String, _ format: FilmFormat, _ encoder: FilmEncoder, calls: FileBytes.Calls
  ) throws(NodeProblem) {
    self.path = path
    holds = format == .mp4
    let bytes: FileBytes
    do { bytes = try FileBytes(creating: path, calls: calls, keepsContent: true) } catch {
      throw FileMessages.problem(error.errorNumber, path, for: .writing)
    }
    let names = format.library
    container = try MediaContainer(
      names.container, options: names.options, bytes, cure: "name another \"format\"")
    var tracks = unsafe [
      FilmTrack.pictures: Stream(
        index: container.add(encoder.pictures.codec), duration: encoder.pictures.period)
    ]
    if let sound = encoder.sound {
      let block = unsafe Int64(sound.codec.pointee.frame_size)
      let rate = unsafe Int(sound.codec.pointee.sample_rate)
      tracks[.sound] = unsafe Stream(
        index: container.add(sound.codec), duration: .samples(block, rate: rate),
        // Matroska's times of sound have the decoder's delay in them (RFC 9559, CodecDelay), which libavformat's writer
        // leaves to us though its reader takes it out.
        shift: format == .mp4 ? 0 : .samples(Int64(sound.delay), rate: rate))
    }
    self.tracks = tracks
  }

  var hasBegun: Bool { container.hasBegun }
  var byteCount: Int { Int(container.byteCount) }

  /// Empties the file and writes what comes first in it.
  func begin() throws(NodeFault) {
    do throws(NodeFault) { try container.begin() } catch { throw withPlace(error) }
  }

  /// Appends a packet; times count from the origin.
  func write(_ packet: EncodedPacket, origin: Nanoseconds) throws(NodeFault) {
    self.origin = origin
    guard holds && packet.track == .pictures else { return try put(packet, nil) }
    if let held { try put(held, packet.time - held.time) }
    held = packet
  }

  private func put(_ packet: EncodedPacket, _ length: Nanoseconds?) throws(NodeFault) {
    guard let track = tracks[packet.track] else { return }
    packet.setTime(
      container.timeBase(track.index), origin: origin - track.shift, duration: length ?? track.duration)
    front = max(front, packet.time - origin)
    do throws(NodeFault) { unsafe try container.write(packet.packet, to: track.index) } catch {
      throw withPlace(error)
    }
  }

  /// Brings everything onto the disk that can be played from there.
  func refresh() throws(NodeFault) {
    do throws(NodeFault) { try container.flush() } catch { throw withPlace(error) }
    safe = max(safe, front - FilmFormat.unfinished)
  }

  /// Completes the file: its last picture stands up to a time.
  func finish(at end: Nanoseconds) throws(NodeFault) {
    if let held { try put(held, max(end - held.time, tracks[.pictures]?.duration ?? 0)) }
    held = nil
    do throws(NodeFault) { try container.finish() } catch { throw withPlace(error) }
    safe = front
  }

  /// Removes the file from its folder.
  func remove() { unsafe unlink(path) }

  /// The fault with the milliseconds that are safe.
  private func withPlace(_ fault: NodeFault) -> NodeFault {
    NodeFault(fault.reason, code: fault.code, detail: safe / 1_000_000)
  }
}
