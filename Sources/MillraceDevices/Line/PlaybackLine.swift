internal import MillraceCore
internal import Synchronization

/// Carries audio from a node to the thread of a playback device, each block at its position on the device's timeline.
///
/// The device plays continuously from position 0 of its epoch. Where there is no block it plays silence; where blocks overlap, the later
/// one wins, which is how audio that has not started playing is rewound. The node reads the clock, writes blocks slightly ahead of it, and
/// wakes the device's thread. Neither side waits or locks. The wake-up costs a system call when the device's thread sleeps, which is
/// nearly always: the thread polls every `interval` anyway, but that is too late for audio queued only `latency` ahead.
@safe
final class PlaybackLine: @unchecked Sendable {
  /// A run of interleaved floats.
  struct Block {
    var epoch: Int
    /// Position of its first frame on the device's timeline.
    var position: Int64
    var frames: Int
    /// Frames of silence that follow.
    var silence = 0
    /// True if it overwrites earlier blocks. Frames of it that arrive late are then not counted as missed.
    var replaces = false
  }

  private static let capacity = 16

  let rate: Int
  let channels: Int
  /// Most frames of a block.
  let frames: Int
  /// How far ahead of the device's clock audio is queued, at most, in frames.
  let ahead: Int
  let clock = SharedClock()
  /// Wakes the device's thread; nil if the thread polls.
  let wakePipe: WakePipe?
  private let waker: Waker
  private let memory: UnsafeMutablePointer<Float>
  private var blocks: RingWriter<Block>
  private var published = 0
  private var waiting: RingReader<Block>
  private var taken = 0
  private var eventWriter: RingWriter<DeviceEvent>
  private var eventReader: RingReader<DeviceEvent>
  private var lostAt: Nanoseconds?
  /// Frames that reached the device too late.
  private let missed = Atomic<Int>(0)

  /// - Parameter ahead: how far ahead of the clock audio is queued, in frames; 0: as far as a full ring reaches.
  init(rate: Int, channels: Int, frames: Int, ahead: Int = 0, wakePipe: WakePipe?, waker: Waker) {
    self.rate = rate
    self.channels = channels
    self.frames = frames
    self.ahead = max(ahead, Self.capacity * frames)
    self.wakePipe = wakePipe
    self.waker = waker
    let ring = Ring<Block>(minimumCapacity: Self.capacity)
    blocks = ring.writer
    waiting = ring.reader
    let events = Ring<DeviceEvent>(minimumCapacity: 16)
    eventWriter = events.writer
    eventReader = events.reader
    unsafe memory = .allocate(capacity: Self.capacity * frames * channels)
    unsafe memory.initialize(repeating: 0, count: Self.capacity * frames * channels)
  }

  deinit { unsafe memory.deallocate() }

  // MARK: The node

  /// True if another block fits.
  var hasRoom: Bool { blocks.hasRoom }

  /// The next block's memory. Valid only while `hasRoom`.
  var space: UnsafeMutablePointer<Float> {
    unsafe memory + published % Self.capacity * frames * channels
  }

  /// Publishes the block in `space`.
  func publish(_ block: Block) {
    blocks.push(block)
    published += 1
    wakePipe?.signal()
  }

  /// The next device event; nil if there is none.
  func nextEvent() -> DeviceEvent? { eventReader.pop() }

  /// Frames since the last call that reached the device too late and were not played.
  func takeMissed() -> Int { missed.exchange(0, ordering: .relaxed) }

  // MARK: The device's thread

  /// The oldest block; nil if the line is empty.
  var front: Block? { waiting.peek { $0 } }

  /// The oldest block's samples. Valid only while `front` is not nil.
  var samples: UnsafePointer<Float> {
    unsafe UnsafePointer(memory + taken % Self.capacity * frames * channels)
  }

  /// Releases the oldest block.
  func drop() {
    guard waiting.pop() != nil else { return }
    taken += 1
  }

  /// Counts frames that arrived too late.
  func miss(_ frames: Int) { missed.add(frames, ordering: .relaxed) }

  /// Publishes the clock. The first reading of an epoch wakes the node.
  func publish(_ line: DeviceClock, isFirst: Bool, at now: Nanoseconds) {
    clock.publish(line)
    guard isFirst else { return }
    if let since = lostAt { post(.back(max(0, now &- since))) } else { waker.wake() }
    lostAt = nil
  }

  /// Reports that the device disappeared.
  func lose(at now: Nanoseconds) {
    clock.publish(nil)
    guard lostAt == nil else { return }
    lostAt = now
    post(.lost)
  }

  private func post(_ event: DeviceEvent) {
    if eventWriter.hasRoom { eventWriter.push(event) }
    waker.wake()
  }
}

/// Reads the timeline frame by frame, for devices without a timeline of their own: blocks at their positions, silence between them. Used by
/// the device's thread.
@safe
struct TimelineReader: ~Copyable {
  private let line: PlaybackLine
  private(set) var position: Int64 = 0
  var epoch: Int
  /// A ring of `span` frames of the timeline from `position`; a frame is stored at its position modulo `span`.
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

  /// Copies waiting blocks to their positions. Frames that lie before the current position are late and are skipped.
  private func takeBlocks() {
    let channels = line.channels
    while let block = line.front {
      if block.epoch == epoch {
        let end = block.position + Int64(block.frames)
        // Too far ahead; keep it in the line.
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

  /// Calls `body` for the one or two pieces of memory that hold these frames, each with the offset of its first frame and its length.
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
