internal import MillraceCore
internal import MillraceDSP

/// Audio queued on a device whose reference has not been emitted yet. What the device has not started playing can still be rewound.
///
/// One contiguous run of interleaved floats. It grows at the end as audio is queued, and shrinks at the front as audio becomes final.
/// Allocates in `init` only.
@safe
struct QueuedAudio: ~Copyable {
  private let channels: Int
  /// Most frames in the queue, and most appended at a time.
  private let capacity: Int
  private let longest: Int
  /// Twice the capacity, so that the contents are rarely moved to the front.
  private let memory: UnsafeMutablePointer<Float>
  /// Index of the first frame in `memory`.
  private var begin = 0
  private(set) var count = 0
  /// Position of the first frame in the reference.
  private(set) var position: Int64 = 0
  /// Time at which the frame after the last one is heard, and the length of a frame on the device's clock.
  private var end: Nanoseconds = 0
  private var frameTime = 0.0
  /// True if the run has ended: all of it is final, and what follows belongs to another run.
  private(set) var isOver = false

  /// Makes a queue for up to `frames` frames, appended up to `longest` at a time.
  init(channels: Int, frames: Int, longest: Int) {
    self.channels = channels
    self.longest = longest
    capacity = frames + longest
    unsafe memory = .allocate(capacity: 2 * capacity * channels)
    unsafe memory.initialize(repeating: 0, count: 2 * capacity * channels)
  }

  deinit { unsafe memory.deallocate() }

  /// True if the first frames have to be emitted, final or not, before more is queued.
  var isFull: Bool { count + longest > capacity }

  /// Memory for the next frames, at most `longest`. Valid only while the queue is not full.
  var space: UnsafeMutablePointer<Float> {
    mutating get {
      if begin + count + longest > 2 * capacity {
        unsafe memory.update(from: memory + begin * channels, count: count * channels)
        begin = 0
      }
      return unsafe memory + (begin + count) * channels
    }
  }

  /// Appends the frames written to `space`.
  /// - Parameters:
  ///   - frames: number of frames.
  ///   - position: position of the first one in the reference.
  ///   - end: time at which the frame after the last one is heard.
  ///   - frameTime: nanoseconds per frame.
  mutating func append(_ frames: Int, position: Int64, until end: Nanoseconds, frameTime: Double) {
    if count == 0 { self.position = position }
    count += frames
    self.end = end
    self.frameTime = frameTime
  }

  /// Ends the run; what is appended next belongs to another one.
  mutating func close() { isOver = count > 0 }

  /// Time at which the first frame is heard.
  var time: Nanoseconds { end &- Nanoseconds((Double(count) * frameTime).rounded()) }

  /// The first frames. Valid until the queue changes.
  func first(_ frames: Int) -> UnsafeBufferPointer<Float> {
    unsafe UnsafeBufferPointer(start: memory + begin * channels, count: frames * channels)
  }

  /// Drops the first frames.
  mutating func drop(_ frames: Int) {
    begin += frames
    count -= frames
    position += Int64(frames)
    guard count == 0 else { return }
    begin = 0
    isOver = false
  }

  /// Fades out the last `frames` frames over the first `fade` of them and silences the rest. Returns a pointer to them.
  mutating func fade(last frames: Int, over fade: Int) -> UnsafePointer<Float> {
    let faded = unsafe memory + (begin + count - frames) * channels
    for index in 0..<fade {
      let gain = Float(fade - index) / Float(fade + 1)
      for channel in 0..<channels { unsafe faded[index * channels + channel] *= gain }
    }
    unsafe (faded + fade * channels).update(repeating: 0, count: (frames - fade) * channels)
    return unsafe UnsafePointer(faded)
  }
}
