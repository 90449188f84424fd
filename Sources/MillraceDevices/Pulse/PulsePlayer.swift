internal import CMillraceSys
internal import CPulse
internal import MillraceCore
internal import MillraceDSP

/// Tracks the position of a PulseAudio playback stream: derives the clock from the server's requests, and writes each block at its position
/// on the line. Used by the server's thread.
///
/// The server requests exactly as many bytes as it has consumed, at the moment it consumes them. The total requested, minus the size of its
/// buffer, is therefore what it has played. Writes seek relative to the end of the previous write, the only seek mode that keeps this
/// accounting exact.
struct PulsePlayer {
  /// The server's buffer, in microseconds. It stops requesting when the buffer is full.
  static let room: UInt64 = 500_000

  private let frameBytes: Int
  private let rate: Int
  private var loop: TimestampLoop
  private var epoch = 0
  /// Size of the server's buffer, and bytes written or skipped in all.
  private var bufferBytes = 0
  private var passed = 0
  /// Requests seen in this epoch; the first ones only fill the buffer.
  private var isKnown = false
  private var requests = 0

  /// Requests needed before the clock is trusted.
  private static let settling = 8

  init(rate: Int, channels: Int) {
    self.rate = rate
    frameBytes = channels * MemoryLayout<Float>.size
    loop = TimestampLoop(rate: rate)
  }

  /// Starts a new epoch, with this many bytes of buffer.
  mutating func begin(frames bytes: Int) {
    bufferBytes = bytes
    passed = 0
    epoch += 1
    requests = 0
    isKnown = false
    loop.restart()
  }

  /// Frames the server has consumed, as far as its requests show.
  private func taken(_ stream: OpaquePointer) -> Int64 {
    let asked = unsafe passed + Int(pa_stream_writable_size(stream))
    return Int64((asked - bufferBytes) / frameBytes)
  }

  /// Updates the clock from a request.
  mutating func notePosition(_ stream: OpaquePointer, _ line: PlaybackLine) {
    let position = unsafe taken(stream)
    // Until playback starts, the server has requested only its buffer.
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

  /// Writes the waiting blocks. A block that replaces an earlier one overwrites it; if the server has already started on that one, it rewinds
  /// as far as its device allows.
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
