internal import MillraceCore
internal import MillraceDSP
internal import Synchronization

/// Carries audio from the thread of a capture device to a node, cut into the node's packets.
///
/// The device's thread calls `arrive`, then `take` for each piece, and returns: no lock, no heap, no waiting. A `TimestampLoop` over the
/// arrival times yields the timestamps. When the node does not keep up, audio is lost and counted; its place in the stream stays
/// empty.
@safe
final class CaptureLine: @unchecked Sendable {
  /// One packet's audio.
  struct Block {
    /// Position of its first frame, counted from the first frame the device delivered.
    var position: Int64
    /// Time at which its first frame was recorded, CLOCK_MONOTONIC.
    var time: Nanoseconds
    /// True if it does not follow the previous block.
    var isDiscontinuous: Bool
  }

  /// Most blocks that wait for the node.
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
  private var eventWriter: RingWriter<DeviceEvent>
  private var eventReader: RingReader<DeviceEvent>
  private let hasEnded = Atomic<Bool>(false)
  /// Frames lost because the node did not keep up.
  private let overrun = Atomic<Int>(0)
  /// Deviation of the device's rate from nominal, in thousandths of a part per million.
  private let skewBits = Atomic<Int>(0)

  // Used by the device's thread only.
  private var loop: TimestampLoop
  /// Frames delivered, including lost ones.
  private var position: Int64 = 0
  /// Frames in the block being filled, and whether it follows a gap.
  private var filled = 0
  private var isDiscontinuous = false
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
    let events = Ring<DeviceEvent>(minimumCapacity: 16)
    eventWriter = events.writer
    eventReader = events.reader
    unsafe memory = .allocate(byteCount: Self.capacity * frames * frameBytes, alignment: 64)
  }

  deinit { unsafe memory.deallocate() }

  // MARK: The device's thread

  /// Records that `count` frames have arrived by `now`. Call `take` for them next.
  func arrive(_ count: Int, at now: Nanoseconds) {
    guard count > 0 else { return }
    if lostAt != nil { deviceReturned(at: now, count) }
    loop.update(position: position + Int64(count), at: now)
    skewBits.store(Int(loop.skew * 1_000), ordering: .relaxed)
  }

  /// Copies frames into the line; nil stands for that many frames of silence.
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
        // Room never shrinks, so a block that was started is always completed.
        overrun.add(part, ordering: .relaxed)
        isDiscontinuous = true
      }
      position += Int64(part)
      done += part
      if filled == frames { publish() }
    }
  }

  private func publish() {
    let first = position - Int64(frames)
    blocks.push(Block(position: first, time: loop.time(of: Double(first)), isDiscontinuous: isDiscontinuous))
    published += 1
    filled = 0
    isDiscontinuous = false
    waker.wake()
  }

  /// Reports that the device disappeared.
  func lose(at now: Nanoseconds) {
    guard lostAt == nil else { return }
    lostAt = now
    post(.lost)
  }

  /// Counts the time the device was gone as frames, so that positions still tell time.
  private func deviceReturned(at now: Nanoseconds, _ count: Int) {
    guard let since = lostAt else { return }
    lostAt = nil
    let away = max(0, now &- since)
    position += max(0, Int64(Double(away) * Double(rate) / 1e9) - Int64(count))
    filled = 0
    isDiscontinuous = true
    loop.restart()
    post(.back(away))
  }

  /// Marks the end of the stream.
  func end() {
    hasEnded.store(true, ordering: .releasing)
    waker.wake()
  }

  private func post(_ event: DeviceEvent) {
    if eventWriter.hasRoom { eventWriter.push(event) }
    waker.wake()
  }

  // MARK: The node

  /// The oldest block; nil if the line is empty.
  var front: Block? { waiting.peek { $0 } }

  /// The oldest block's bytes. Valid only while `front` is not nil.
  var bytes: UnsafeRawPointer {
    unsafe UnsafeRawPointer(memory + taken % Self.capacity * frames * frameBytes)
  }

  /// Releases the oldest block.
  func drop() {
    guard waiting.pop() != nil else { return }
    taken += 1
  }

  /// True when the line is empty and the stream has ended.
  var isOver: Bool { hasEnded.load(ordering: .acquiring) && waiting.isEmpty }

  /// The next device event; nil if there is none.
  func nextEvent() -> DeviceEvent? { eventReader.pop() }

  /// Frames lost since the last call because the node did not keep up.
  func takeOverrun() -> Int { overrun.exchange(0, ordering: .relaxed) }

  /// How much faster than its nominal rate the device runs, in parts per million.
  var skew: Double { Double(skewBits.load(ordering: .relaxed)) / 1_000 }
}
