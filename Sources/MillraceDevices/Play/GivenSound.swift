internal import MillraceCore
internal import MillraceDSP

/// Sound that was given to a device ahead of its time, and that the reference has not told yet: what of it the device has not begun with
/// can still be called back.
///
/// A stretch of interleaved floats without a gap. It grows at its end, as sound is given, and is taken from its beginning, as that becomes
/// final. All memory is taken in `init`.
@safe
struct GivenSound: ~Copyable {
  private let channels: Int
  /// Most frames held, and most appended at a time.
  private let capacity: Int
  private let longest: Int
  /// Twice the capacity, so that what is held is moved to the front once in a while only.
  private let memory: UnsafeMutablePointer<Float>
  /// The first frame's place in `memory`.
  private var begin = 0
  private(set) var count = 0
  /// Position of the first frame in the reference.
  private(set) var position: Int64 = 0
  /// When what comes behind the last frame is heard, and how long a frame lasts on the device's clock.
  private var end: Nanoseconds = 0
  private var frameTime = 0.0
  /// What follows will not be of the same stretch: all of this is final.
  private(set) var isOver = false

  /// Holds up to `frames` frames, given up to `longest` at a time.
  init(channels: Int, frames: Int, longest: Int) {
    self.channels = channels
    self.longest = longest
    capacity = frames + longest
    unsafe memory = .allocate(capacity: 2 * capacity * channels)
    unsafe memory.initialize(repeating: 0, count: 2 * capacity * channels)
  }

  deinit { unsafe memory.deallocate() }

  /// True when the first frames have to go, final or not, before more is given.
  var isFull: Bool { count + longest > capacity }

  /// Memory for the next frames, `longest` at most. Only while it is not full.
  var space: UnsafeMutablePointer<Float> {
    mutating get {
      if begin + count + longest > 2 * capacity {
        unsafe memory.update(from: memory + begin * channels, count: count * channels)
        begin = 0
      }
      return unsafe memory + (begin + count) * channels
    }
  }

  /// Appends what `space` was filled with.
  /// - Parameters:
  ///   - frames: how many.
  ///   - position: of the first of them in the reference.
  ///   - end: when what comes behind them is heard.
  ///   - frameTime: nanoseconds a frame lasts.
  mutating func append(_ frames: Int, position: Int64, until end: Nanoseconds, frameTime: Double) {
    if count == 0 { self.position = position }
    count += frames
    self.end = end
    self.frameTime = frameTime
  }

  /// Says that what comes next is of another stretch.
  mutating func close() { isOver = count > 0 }

  /// When the first frame is heard.
  var time: Nanoseconds { end &- Nanoseconds((Double(count) * frameTime).rounded()) }

  /// The first frames. Until the next change.
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

  /// Fades the last `frames` frames over the first `fade` of them, and silences the others. Answers where they are.
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
