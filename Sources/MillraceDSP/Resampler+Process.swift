internal import CMillraceKernels

extension Resampler {
  /// The result of a call, in frames.
  public struct Progress: Sendable, Equatable {
    /// Input frames taken. Fewer than offered only when the output is full.
    public var consumed: Int
    /// Output frames written, from the start of the output.
    public var produced: Int
  }

  /// Resamples float frames until the input is used up or the output is full.
  ///
  /// With room for `outputCount(forInput:)` frames all input is taken. With less, nothing is lost: the rest follows in the next call,
  /// which may pass no input. NaN and infinities count as silence, louder samples are clamped to ``SampleMath/loudest``. Both spans
  /// hold whole frames; samples of an incomplete last frame are not touched. Never allocates.
  public mutating func process(_ input: Span<Float>, into output: inout MutableSpan<Float>) -> Progress {
    unsafe process(input, Source.float, into: &output, Destination.float)
  }

  /// Resamples 16-bit frames; like the float version, with rounding and saturation at the end.
  public mutating func process(_ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> Progress {
    unsafe process(input, Source.int16, into: &output, Destination.int16)
  }

  /// Resamples 16-bit frames to floats.
  public mutating func process(_ input: Span<Int16>, into output: inout MutableSpan<Float>) -> Progress {
    unsafe process(input, Source.int16, into: &output, Destination.float)
  }

  /// Writes what the filter still holds after the end of the stream, and returns the number of frames; 0 when none are left.
  ///
  /// Call until it returns 0. A stream of `n` frames has then given ceil(n * L / M) frames when compensated, ceil((n + latencyFrames)
  /// * L / M) when delayed. Call ``reset()`` before the next stream; continuing without it inserts `latencyFrames` of silence.
  public mutating func flush(into output: inout MutableSpan<Float>) -> Int {
    let plan = flushPlan(room: output.count / channels)
    unsafe output.withUnsafeMutableBufferPointer { to in
      unsafe run(.silence, plan, into: .float(to.baseAddress))
    }
    return plan.produced
  }

  /// Writes what the filter still holds as 16-bit samples; see the float version.
  public mutating func flush(into output: inout MutableSpan<Int16>) -> Int {
    let plan = flushPlan(room: output.count / channels)
    unsafe output.withUnsafeMutableBufferPointer { to in
      unsafe run(.silence, plan, into: .int16(to.baseAddress))
    }
    return plan.produced
  }

  /// Frames that flushing would still give.
  public var flushCount: Int { outputCount(forInput: flushLeft ?? latencyFrames) }

  // MARK: Processing

  @unsafe private enum Source {
    case float(UnsafePointer<Float>?)
    case int16(UnsafePointer<Int16>?)
    case silence
  }

  @unsafe private enum Destination {
    case float(UnsafeMutablePointer<Float>?)
    case int16(UnsafeMutablePointer<Int16>?)
  }

  private mutating func process<Input, Output>(
    _ input: Span<Input>, _ source: (UnsafePointer<Input>?) -> Source,
    into output: inout MutableSpan<Output>, _ destination: (UnsafeMutablePointer<Output>?) -> Destination
  ) -> Progress {
    let plan = plan(input.count / channels, room: output.count / channels)
    unsafe input.withUnsafeBufferPointer { from in
      unsafe output.withUnsafeMutableBufferPointer { to in
        unsafe run(source(from.baseAddress), plan, into: destination(to.baseAddress))
      }
    }
    return plan
  }

  private mutating func plan(_ offered: Int, room: Int) -> Progress {
    flushLeft = nil
    return progress(offered, room: room)
  }

  private mutating func flushPlan(room: Int) -> Progress {
    let left = flushLeft ?? latencyFrames
    let progress = progress(left, room: room)
    flushLeft = left - progress.consumed
    return progress
  }

  private func progress(_ offered: Int, room: Int) -> Progress {
    var frames = min(offered, inputCount(forOutput: room))
    // When upsampling, one frame gives several: take one more than fits when that fills the output.
    if frames < offered, outputCount(forInput: frames) < room { frames += 1 }
    return Progress(consumed: frames, produced: min(outputCount(forInput: frames), room))
  }

  /// Appends input to the history piece by piece and computes the outputs each piece completes.
  private mutating func run(_ source: Source, _ plan: Progress, into destination: Destination) {
    var taken = 0
    var made = 0
    repeat {
      if filled == capacity { makeRoom() }
      let piece = min(plan.consumed - taken, capacity - filled)
      let count = min(outputCount(forInput: piece), plan.produced - made)
      // The window of the next output ends with the frame it waits for.
      let window = filled + wait - (table.tapCount - 1)
      unsafe append(source, at: taken, frames: piece)
      unsafe emit(count, from: window, into: destination, at: made)
      let position = phase + count * table.step
      wait += position / table.phases - piece
      phase = position % table.phases
      taken += piece
      made += count
    } while taken < plan.consumed
  }

  /// Moves the frames that later outputs still need to the front of the history: a window minus the frame to come, plus one for
  /// outputs that had no room.
  private mutating func makeRoom() {
    let keep = table.tapCount
    for channel in 0..<channels {
      let row = unsafe history + channel * capacity
      unsafe row.update(from: row + (filled - keep), count: keep)
    }
    filled = keep
  }

  private mutating func append(_ source: Source, at offset: Int, frames: Int) {
    for channel in 0..<channels {
      let row = unsafe history + channel * capacity + filled
      switch unsafe source {
      case .float(let start):
        guard let start = unsafe start else { break }
        unsafe mk_deinterleave_f32(start + offset * channels, channels, channel, row, frames)
        var fresh = unsafe MutableSpan(_unsafeStart: row, count: frames)
        SampleMath.sanitize(&fresh)
      case .int16(let start):
        guard let start = unsafe start else { break }
        unsafe mk_deinterleave_s16_f32(start + offset * channels, channels, channel, row, frames)
      case .silence:
        unsafe row.update(repeating: 0, count: frames)
      }
    }
    filled += frames
  }

  private func emit(_ count: Int, from window: Int, into destination: Destination, at offset: Int) {
    switch unsafe destination {
    case .float(let start):
      guard let start = unsafe start else { break }
      unsafe filter(count, from: window, phase: phase, into: start + offset * channels)
    case .int16(let start):
      guard let start = unsafe start else { break }
      var done = 0
      while done < count {
        let piece = min(count - done, Self.scratchFrames)
        let position = phase + done * table.step
        unsafe filter(
          piece, from: window + position / table.phases, phase: position % table.phases, into: scratch)
        unsafe mk_f32_to_s16(scratch, start + (offset + done) * channels, piece * channels)
        done += piece
      }
    }
  }

  private func filter(_ count: Int, from window: Int, phase: Int, into output: UnsafeMutablePointer<Float>) {
    guard count > 0 else { return }
    for channel in 0..<channels {
      unsafe mk_polyphase_f32(
        history + channel * capacity + window, table.coefficients, table.tapCount, table.phases,
        table.step / table.phases, table.step % table.phases, phase, output + channel, channels, count)
    }
  }
}
