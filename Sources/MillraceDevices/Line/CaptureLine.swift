internal import MillraceCore
internal import MillraceDSP
internal import Synchronization

/// Sound on its way from the thread of a recording device to a node, cut into the node's packets.
///
/// The device's thread calls `arrive`, then `take` for each piece, and returns: no lock, no heap, no waiting. Times come from
/// a `TimestampLoop` over the arrivals. When the node takes nothing, what comes is lost and counted; its place in the stream
/// stays empty.
@safe
final class CaptureLine: @unchecked Sendable {
  /// A packet's worth of sound.
  struct Block {
    /// Of its first frame, counted from the first that came.
    var position: Int64
    /// When its first frame was recorded, CLOCK_MONOTONIC.
    var time: Nanoseconds
    /// It does not follow the block before it.
    var isBroken: Bool
  }

  /// Blocks that wait for the node, at most.
  private static let capacity = 32

  let rate: Int
  let frames: Int
  let frameBytes: Int
  private let waker: Waker
  private let memory: UnsafeMutableRawPointer
  private var blocks: RingWriter<Block>
  private var published = 0
  private var waiting: RingReader<Block>
  private var taken = 0
  private var newsIn: RingWriter<DeviceNews>
  private var newsOut: RingReader<DeviceNews>
  private let hasEnded = Atomic<Bool>(false)
  /// Frames lost because the node took nothing.
  private let overrun = Atomic<Int>(0)
  /// The device's rate against its nominal one, in thousandths of a part per million.
  private let skewBits = Atomic<Int>(0)

  // Of the device's thread.
  private var loop: TimestampLoop
  /// Frames that came, lost ones included.
  private var position: Int64 = 0
  /// Frames in the block that is being filled, and whether it begins a stretch.
  private var filled = 0
  private var isBroken = false
  private var lostAt: Nanoseconds?

  init(rate: Int, frames: Int, frameBytes: Int, waker: Waker) {
    self.rate = rate
    self.frames = frames
    self.frameBytes = frameBytes
    self.waker = waker
    loop = TimestampLoop(rate: rate)
    let ring = Ring<Block>(minimumCapacity: Self.capacity)
    blocks = ring.writer
    waiting = ring.reader
    let news = Ring<DeviceNews>(minimumCapacity: 16)
    newsIn = news.writer
    newsOut = news.reader
    unsafe memory = .allocate(byteCount: Self.capacity * frames * frameBytes, alignment: 64)
  }

  deinit { unsafe memory.deallocate() }

  // MARK: The device's thread

  /// Notes that `count` frames have come by now; they are taken next.
  func arrive(_ count: Int, at now: Nanoseconds) {
    guard count > 0 else { return }
    if lostAt != nil { comeBack(at: now, count) }
    loop.update(position: position + Int64(count), at: now)
    skewBits.store(Int(loop.skew * 1_000), ordering: .relaxed)
  }

  /// Takes frames; nil: so many frames of silence.
  func take(_ bytes: UnsafeRawPointer?, frames count: Int) {
    var done = 0
    while done < count {
      let part = min(count - done, frames - filled)
      if blocks.hasRoom {
        let target = unsafe memory + (published % Self.capacity * frames + filled) * frameBytes
        if let bytes = unsafe bytes {
          unsafe target.copyMemory(from: bytes + done * frameBytes, byteCount: part * frameBytes)
        } else {
          unsafe target.initializeMemory(as: UInt8.self, repeating: 0, count: part * frameBytes)
        }
        filled += part
      } else {
        // Room cannot go away: a block that was begun is finished.
        overrun.add(part, ordering: .relaxed)
        isBroken = true
      }
      position += Int64(part)
      done += part
      if filled == frames { publish() }
    }
  }

  private func publish() {
    let first = position - Int64(frames)
    blocks.push(Block(position: first, time: loop.time(of: Double(first)), isBroken: isBroken))
    published += 1
    filled = 0
    isBroken = false
    waker.wake()
  }

  /// Says that the device is gone.
  func lose(at now: Nanoseconds) {
    guard lostAt == nil else { return }
    lostAt = now
    tell(.lost)
  }

  /// The time away counts as frames, so that positions still tell time.
  private func comeBack(at now: Nanoseconds, _ count: Int) {
    guard let since = lostAt else { return }
    lostAt = nil
    let away = max(0, now &- since)
    position += max(0, Int64(Double(away) * Double(rate) / 1e9) - Int64(count))
    filled = 0
    isBroken = true
    loop.restart()
    tell(.back(away))
  }

  /// Says that nothing more will come.
  func end() {
    hasEnded.store(true, ordering: .releasing)
    waker.wake()
  }

  private func tell(_ news: DeviceNews) {
    if newsIn.hasRoom { newsIn.push(news) }
    waker.wake()
  }

  // MARK: The node

  /// The oldest block; nil when none waits.
  var front: Block? { waiting.peek { $0 } }

  /// The oldest block's bytes. Only while there is one.
  var bytes: UnsafeRawPointer {
    unsafe UnsafeRawPointer(memory + taken % Self.capacity * frames * frameBytes)
  }

  /// Gives the oldest block's memory back.
  func drop() {
    guard waiting.pop() != nil else { return }
    taken += 1
  }

  /// True when no block waits and none will come.
  var isOver: Bool { hasEnded.load(ordering: .acquiring) && waiting.isEmpty }

  /// What became of the device since the last question.
  func news() -> DeviceNews? { newsOut.pop() }

  /// Frames lost since the last question because the node took nothing.
  func takeOverrun() -> Int { overrun.exchange(0, ordering: .relaxed) }

  /// How much faster than its nominal rate the device runs, in parts per million.
  var skew: Double { Double(skewBits.load(ordering: .relaxed)) / 1_000 }
}
