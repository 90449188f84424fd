internal import CFFmpeg
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import MillraceFiles

/// Writes a recording to a file. Blocks; bulk lane; not thread-safe.
///
/// The file is not touched before `begin`: its old content is replaced by the first picture, not by a graph that never starts.
@safe
final class VideoFileWriter {
  let path: String
  /// How much is playable from the disk, at least.
  private(set) var safe: Nanoseconds = 0
  private let container: MediaContainer

  private struct Stream {
    var index: Int
    /// Duration of a packet.
    var duration: Nanoseconds
    /// Offset that the container requires.
    var shift: Nanoseconds = 0
  }
  private let tracks: [MediaTrack: Stream]
  /// A picture whose duration is unknown until the next one: MP4 stores durations instead of times.
  private var held: EncodedPacket?
  private let holds: Bool
  /// End of the content so far.
  private var front: Nanoseconds = 0
  private var origin: Nanoseconds = 0

  /// Opens a file for the encoders' streams. The path must be checked and claimed.
  init(
    _ path: String, _ format: VideoFileFormat, _ encoder: MediaEncoder, calls: FileBytes.Calls
  ) throws(NodeProblem) {
    self.path = path
    holds = format == .mp4
    let bytes: FileBytes
    do { bytes = try FileBytes(creating: path, calls: calls, keepsContent: true) } catch {
      throw FileMessages.problem(error.errorNumber, path, for: .writing)
    }
    let names = format.library
    container = try MediaContainer(
      names.container, options: names.options, bytes, cure: "set another \"format\"")
    var tracks = unsafe [
      MediaTrack.pictures: Stream(
        index: container.add(encoder.pictures.codec), duration: encoder.pictures.period)
    ]
    if let sound = encoder.sound {
      let block = unsafe Int64(sound.codec.pointee.frame_size)
      let rate = unsafe Int(sound.codec.pointee.sample_rate)
      tracks[.sound] = unsafe Stream(
        index: container.add(sound.codec), duration: .samples(block, rate: rate),
        // Audio times in Matroska include the decoder delay (RFC 9559, CodecDelay); libavformat's muxer leaves that to
        // us, although its demuxer subtracts it.
        shift: format == .mp4 ? 0 : .samples(Int64(sound.delay), rate: rate))
    }
    self.tracks = tracks
  }

  var hasBegun: Bool { container.hasBegun }
  var byteCount: Int { Int(container.byteCount) }

  /// Truncates the file and writes its header.
  func begin() throws(NodeFault) {
    do throws(NodeFault) { try container.begin() } catch { throw withPlace(error) }
  }

  /// Appends a packet; times are relative to the origin.
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

  /// Flushes everything playable to the disk.
  func refresh() throws(NodeFault) {
    do throws(NodeFault) { try container.flush() } catch { throw withPlace(error) }
    safe = max(safe, front - VideoFileFormat.unfinished)
  }

  /// Completes the file; its last picture lasts until `end`.
  func finish(at end: Nanoseconds) throws(NodeFault) {
    if let held { try put(held, max(end - held.time, tracks[.pictures]?.duration ?? 0)) }
    held = nil
    do throws(NodeFault) { try container.finish() } catch { throw withPlace(error) }
    safe = front
  }

  /// Removes the file from its folder.
  func remove() { unsafe unlink(path) }

  /// Adds the playable milliseconds to a fault.
  private func withPlace(_ fault: NodeFault) -> NodeFault {
    NodeFault(fault.reason, code: fault.code, detail: safe / 1_000_000)
  }
}
