internal import CMillraceSys
internal import CPulse
internal import MillraceCore
internal import MillraceDSP

/// What a playing stream of a sound server knows of its place: the clock out of the server's requests, and the writes that put each
/// block where the line says. Of the server's thread.
///
/// The server asks for as many bytes as it has taken, in the moment it takes them; what it has asked for in all, less the room
/// of its buffer, is therefore what it has played. Writes are placed by seeking from the end of the write before, which is the
/// one way of seeking that leaves that account whole.
struct PulsePlayer {
  /// Microseconds of sound the server has room for. Its requests stop when that is full.
  static let room: UInt64 = 500_000

  private let frameBytes: Int
  private let rate: Int
  private var loop: TimestampLoop
  private var epoch = 0
  /// Bytes of the server's buffer, and bytes written or passed over in all.
  private var bufferBytes = 0
  private var passed = 0
  /// Requests seen in this epoch: the first ones only fill the account.
  private var isKnown = false
  private var requests = 0

  /// Requests that are looked at before the clock is believed.
  private static let settling = 8

  init(rate: Int, channels: Int) {
    self.rate = rate
    frameBytes = channels * MemoryLayout<Float>.size
    loop = TimestampLoop(rate: rate)
  }

  /// The stream begins anew, with so many bytes of room.
  mutating func begin(frames bytes: Int) {
    bufferBytes = bytes
    passed = 0
    epoch += 1
    requests = 0
    isKnown = false
    loop.restart()
  }

  /// Frames the server has taken, as far as it has said.
  private func taken(_ stream: OpaquePointer) -> Int64 {
    let asked = unsafe passed + Int(pa_stream_writable_size(stream))
    return Int64((asked - bufferBytes) / frameBytes)
  }

  /// Reads the clock off a request.
  mutating func notePosition(_ stream: OpaquePointer, _ line: PlaybackLine) {
    let position = unsafe taken(stream)
    // A server that has not begun to play has asked for its buffer only.
    guard bufferBytes > 0, position > 0 else { return }
    let now = millrace_monotonic_ns()
    let jumps = loop.jumps
    loop.update(position: position, at: now)
    if loop.jumps != jumps { requests = 0 }
    requests += 1
    guard requests >= Self.settling else { return }
    var delay: Nanoseconds = 0
    if let timing = unsafe pa_stream_get_timing_info(stream) {
      delay = unsafe Nanoseconds(timing.pointee.configured_sink_usec) * 1_000
    }
    line.publish(
      DeviceClock(
        epoch: epoch, position: Double(position), time: loop.time(of: Double(position)),
        rate: loop.rate / 1e9,
        delay: delay), isFirst: !isKnown, at: now)
    isKnown = true
  }

  /// Writes the blocks that wait. One that takes the place of another is written over it: if the server has begun with that, it goes
  /// back as far as its device lets it.
  mutating func write(_ stream: OpaquePointer, _ line: PlaybackLine) {
    while let block = line.front {
      if block.epoch == epoch {
        let late = unsafe taken(stream) - block.position
        if late > 0 && !block.replaces { line.miss(Int(min(late, Int64(block.frames)))) }
        unsafe put(line.samples, block.frames, at: block.position, stream)
        if block.silence > 0 {
          let silence = [Float](repeating: 0, count: block.silence * frameBytes / MemoryLayout<Float>.size)
          unsafe silence.withUnsafeBufferPointer {
            unsafe put($0.baseAddress!, block.silence, at: block.position + Int64(block.frames), stream)
          }
        }
      }
      line.drop()
    }
  }

  private mutating func put(
    _ samples: UnsafePointer<Float>, _ frames: Int, at position: Int64, _ stream: OpaquePointer
  ) {
    let offset = Int(position) * frameBytes - passed
    let bytes = frames * frameBytes
    if unsafe pa_stream_write(stream, samples, bytes, nil, Int64(offset), PA_SEEK_RELATIVE) >= 0 {
      passed += offset + bytes
    }
  }
}
