internal import MillraceCore
internal import Synchronization

/// The node's end of a feed: provides the samples of the current file and counts its plays. No heap, lock or system call, except
/// `pump` on a virtual clock.
@safe
struct FilePlayer: ~Copyable {
  /// What happened to the file while samples were taken.
  enum Change {
    case began, completed, failed
  }

  private let queues: FeedQueues
  private var chunks: RingReader<FeedChunk>
  private var commands: RingWriter<FeedCommand>
  private let feed: FileFeed
  /// The node runs the feed itself.
  private var pumps = false
  private var popped = 0
  /// Frames of the oldest chunk already taken.
  private var used = 0
  private var number: UInt32 = 0
  /// The newest command, while the command queue is full.
  private var pending: FeedCommand?

  /// A file was requested and has not ended.
  private(set) var isPlaying = false
  /// Its first sample has arrived.
  private(set) var hasBegun = false
  /// Repeats to follow the current play; negative: endless.
  var loops: Int
  /// Plays completed, and frames taken of the file in all its plays.
  private(set) var plays = 0
  private(set) var frames = 0
  private var textCount = 0

  /// Makes the queues, for packets of any length, and the feed; `start` runs it.
  init(frames: Int, channels: Int, rate: Int, loops: Int) {
    let queues = FeedQueues(frames: frames, channels: channels)
    let chunks = Ring<FeedChunk>(minimumCapacity: FeedQueues.chunks)
    let commands = Ring<FeedCommand>(minimumCapacity: FeedQueues.commands)
    feed = FileFeed(queues, rate: rate, chunks: chunks.writer, commands: commands.reader)
    self.queues = queues
    self.chunks = chunks.reader
    self.commands = commands.writer
    self.loops = loops
  }

  /// Fills the queue and starts the feed's thread; on a virtual clock every `prepare` runs the feed. False if no thread could be
  /// started.
  mutating func start(isVirtual: Bool) -> Bool {
    feed.pump()
    pumps = isVirtual
    let feed = feed
    return isVirtual || DetachedThread.start("millrace-feed") { feed.run() } == 0
  }

  deinit { queues.isOver.store(true, ordering: .releasing) }

  // MARK: Commands

  /// Plays another file from its first sample.
  mutating func play(_ path: String) {
    number &+= 1
    pending = .play(path: path, number: number)
    (isPlaying, hasBegun, plays, frames) = (true, false, 0, 0)
    sendPending()
  }

  /// Stops playing.
  mutating func stop() {
    number &+= 1
    pending = .stop
    isPlaying = false
    sendPending()
  }

  private mutating func sendPending() {
    guard commands.hasRoom, let command = pending.take() else { return }
    commands.push(command)
  }

  /// Called before samples are taken: sends pending commands and discards chunks of older ones.
  mutating func prepare() {
    sendPending()
    while let front = chunks.peek({ $0 }), front.number != number || !isPlaying { drop() }
    if pumps { feed.pump() }
  }

  private mutating func drop() {
    _ = chunks.pop()
    popped += 1
    used = 0
  }

  // MARK: Samples

  /// Copies the next frames to the start of `target` and returns how many there were; fewer if the feed is late, or if something
  /// happened, which ends the copy: call again.
  mutating func take(
    _ count: Int, into target: UnsafeMutableBufferPointer<Float>
  ) -> (count: Int, change: Change?) {
    var done = 0
    while isPlaying, done < count, let chunk = chunks.peek({ $0 }) {
      switch chunk.kind {
      case .sound:
        let part = min(count - done, chunk.count - used)
        unsafe copy(part, to: unsafe target, at: done)
        done += part
        used += part
        frames += part
        if used == chunk.count { drop() }
      case .began:
        textCount = chunk.count
        return (done, .began)
      case .turned:
        drop()
        plays += 1
        guard loops != 0 else {
          stop()
          return (done, .completed)
        }
        if loops > 0 { loops -= 1 }
      case .failed:
        textCount = chunk.count
        return (done, .failed)
      }
    }
    return (done, nil)
  }

  private func copy(_ count: Int, to target: UnsafeMutableBufferPointer<Float>, at offset: Int) {
    let source = unsafe queues.slot(popped)
    let channels = queues.channels
    for index in 0..<count * channels {
      unsafe target[offset * channels + index] = unsafe source[used * channels + index]
    }
  }

  /// The path that began, or the error message: until `settle`.
  var text: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get {
      let bytes = unsafe queues.bytes(popped).extracting(0..<textCount)
      return unsafe _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
    }
  }

  /// Acknowledges a change whose text has been read.
  mutating func settle(_ change: Change) {
    switch change {
    case .began: hasBegun = true
    case .failed: isPlaying = false
    case .completed: return
    }
    drop()
  }
}
