internal import MillraceCore
internal import Synchronization

/// Sound on its way from a node to the thread of a playing device, each block at its place on the device's own time line.
///
/// The device plays without a pause, from position 0 of its epoch on; where there is no block it is silent, and where there are two the
/// later one counts: so is called back what it has not begun with. The node reads the
/// clock, puts blocks a little ahead of it, and rings. Neither side waits or locks. The ring costs a system call when the device's thread
/// sleeps, which is nearly always: it looks every `interval` by itself, too late for sound that is given only `latency` ahead.
@safe
final class PlaybackLine: @unchecked Sendable {
  /// A stretch of interleaved floats.
  struct Block {
    var epoch: Int
    /// Place of its first frame on the device's time line.
    var position: Int64
    var frames: Int
    /// Frames of silence behind them.
    var silence = 0
    /// It takes the place of what was given before, and what of it comes too late is not missed.
    var replaces = false
  }

  private static let capacity = 16

  let rate: Int
  let channels: Int
  /// Most frames of a block.
  let frames: Int
  /// How many frames ahead of its clock the device is given sound, at most.
  let ahead: Int
  let clock = SharedClock()
  /// What wakes the device's thread; nil when it looks by itself.
  let bell: PipeBell?
  private let waker: Waker
  private let memory: UnsafeMutablePointer<Float>
  private var blocks: RingWriter<Block>
  private var published = 0
  private var waiting: RingReader<Block>
  private var taken = 0
  private var newsIn: RingWriter<DeviceNews>
  private var newsOut: RingReader<DeviceNews>
  private var lostAt: Nanoseconds?
  /// Frames that reached the device after their place.
  private let missed = Atomic<Int>(0)

  /// `ahead` 0: as far as the blocks reach that wait.
  init(rate: Int, channels: Int, frames: Int, ahead: Int = 0, bell: PipeBell?, waker: Waker) {
    self.rate = rate
    self.channels = channels
    self.frames = frames
    self.ahead = max(ahead, Self.capacity * frames)
    self.bell = bell
    self.waker = waker
    let ring = Ring<Block>(minimumCapacity: Self.capacity)
    blocks = ring.writer
    waiting = ring.reader
    let news = Ring<DeviceNews>(minimumCapacity: 16)
    newsIn = news.writer
    newsOut = news.reader
    unsafe memory = .allocate(capacity: Self.capacity * frames * channels)
    unsafe memory.initialize(repeating: 0, count: Self.capacity * frames * channels)
  }

  deinit { unsafe memory.deallocate() }

  // MARK: The node

  /// True while one more block fits.
  var hasRoom: Bool { blocks.hasRoom }

  /// The next block's memory. Only while there is room.
  var space: UnsafeMutablePointer<Float> {
    unsafe memory + published % Self.capacity * frames * channels
  }

  /// Hands the filled block over.
  func publish(_ block: Block) {
    blocks.push(block)
    published += 1
    bell?.ring()
  }

  /// What became of the device since the last question.
  func news() -> DeviceNews? { newsOut.pop() }

  /// Frames since the last question that reached the device after their place, and were not heard.
  func takeMissed() -> Int { missed.exchange(0, ordering: .relaxed) }

  // MARK: The device's thread

  /// The oldest block; nil when none waits.
  var front: Block? { waiting.peek { $0 } }

  /// The oldest block's samples. Only while there is one.
  var samples: UnsafePointer<Float> {
    unsafe UnsafePointer(memory + taken % Self.capacity * frames * channels)
  }

  /// Gives the oldest block's memory back.
  func drop() {
    guard waiting.pop() != nil else { return }
    taken += 1
  }

  /// Notes frames that came after their place.
  func miss(_ frames: Int) { missed.add(frames, ordering: .relaxed) }

  /// Publishes the clock. The first line of an epoch wakes the node.
  func publish(_ line: DeviceClock, isFirst: Bool, at now: Nanoseconds) {
    clock.publish(line)
    guard isFirst else { return }
    if let since = lostAt { tell(.back(max(0, now &- since))) } else { waker.wake() }
    lostAt = nil
  }

  /// Says that the device is gone.
  func lose(at now: Nanoseconds) {
    clock.publish(nil)
    guard lostAt == nil else { return }
    lostAt = now
    tell(.lost)
  }

  private func tell(_ news: DeviceNews) {
    if newsIn.hasRoom { newsIn.push(news) }
    waker.wake()
  }
}

/// The next frames of a device's time line, for devices that have no such line of their own: blocks at their places, silence
/// between them. Of the device's thread.
@safe
struct TimelineReader: ~Copyable {
  private let line: PlaybackLine
  private(set) var position: Int64 = 0
  var epoch: Int
  /// The time line from `position` on, so many frames of it: the frame at a position is at its remainder.
  private let memory: UnsafeMutablePointer<Float>
  private let span: Int

  init(_ line: PlaybackLine, epoch: Int) {
    self.line = line
    self.epoch = epoch
    span = line.ahead
    unsafe memory = .allocate(capacity: span * line.channels)
    unsafe memory.initialize(repeating: 0, count: span * line.channels)
  }

  deinit { unsafe memory.deallocate() }

  /// Writes the next `frames` frames.
  mutating func read(_ frames: Int, into target: UnsafeMutablePointer<Float>) {
    let channels = line.channels
    var done = 0
    while done < frames {
      takeBlocks()
      let count = min(frames - done, span)
      unsafe eachPart(of: count, from: position) { part, at, length in
        unsafe (target + (done + at) * channels).update(from: part, count: length * channels)
        unsafe part.update(repeating: 0, count: length * channels)
      }
      done += count
      position += Int64(count)
    }
  }

  /// Puts the blocks that wait at their places. What a block has before the present place came too late and is left out.
  private func takeBlocks() {
    let channels = line.channels
    while let block = line.front {
      if block.epoch == epoch {
        let end = block.position + Int64(block.frames)
        // Too far ahead: it waits.
        guard end + Int64(block.silence) <= position + Int64(span) else { return }
        let late = Int(min(Int64(block.frames), max(0, position - block.position)))
        if late > 0 && !block.replaces { line.miss(late) }
        let samples = unsafe line.samples + late * channels
        unsafe eachPart(of: block.frames - late, from: block.position + Int64(late)) { part, at, length in
          unsafe part.update(from: samples + at * channels, count: length * channels)
        }
        let silent = max(end, position)
        unsafe eachPart(of: max(0, Int(end + Int64(block.silence) - silent)), from: silent) {
          part, _, length in
          unsafe part.update(repeating: 0, count: length * channels)
        }
      }
      line.drop()
    }
  }

  /// The one or two pieces of memory in which so many frames from a position on lie: each with its first frame's number, and its length.
  private func eachPart(
    of frames: Int, from first: Int64, _ body: (UnsafeMutablePointer<Float>, _ at: Int, _ length: Int) -> Void
  ) {
    var done = 0
    while done < frames {
      let place = Int((first + Int64(done)) % Int64(span))
      let length = min(frames - done, span - place)
      unsafe body(memory + place * line.channels, done, length)
      done += length
    }
  }
}
