internal import MillraceCore
internal import Synchronization

/// The node's end of a feed: gives the samples of the present file and counts its plays. No heap, lock or system call, save
/// `pump` on a virtual clock.
@safe
struct FileMusic: ~Copyable {
  /// What happened to the file while samples were taken.
  enum News {
    case began, completed, failed
  }

  private let line: FeedLine
  private var pieces: RingReader<FeedPiece>
  private var orders: RingWriter<FeedOrder>
  private let feed: FileFeed
  /// No thread of its own runs the feed.
  private var pumps = false
  private var popped = 0
  /// Frames of the oldest piece already taken.
  private var used = 0
  private var number: UInt32 = 0
  /// The newest order, while the line to the feed is full.
  private var pending: FeedOrder?

  /// A file was asked for and has not ended.
  private(set) var isPlaying = false
  /// Its first sample is there.
  private(set) var hasBegun = false
  /// Plays to follow the present one; negative: for ever.
  var loops: Int
  /// Plays completed, and frames given of the file in all its plays.
  private(set) var plays = 0
  private(set) var frames = 0
  private var textCount = 0

  /// Makes the line, for packets of any length, and the feed; `start` sets it going.
  init(frames: Int, channels: Int, rate: Int, loops: Int) {
    let line = FeedLine(frames: frames, channels: channels)
    let pieces = Ring<FeedPiece>(minimumCapacity: FeedLine.pieces)
    let orders = Ring<FeedOrder>(minimumCapacity: FeedLine.orders)
    feed = FileFeed(line, rate: rate, pieces: pieces.writer, orders: orders.reader)
    self.line = line
    self.pieces = pieces.reader
    self.orders = orders.writer
    self.loops = loops
  }

  /// Fills the line and lets the feed run by itself, or on a virtual clock with every `prepare`. False when the system has no
  /// thread left.
  mutating func start(isVirtual: Bool) -> Bool {
    feed.pump()
    pumps = isVirtual
    let feed = feed
    return isVirtual || OwnThread.start("millrace-feed") { feed.run() } == 0
  }

  deinit { line.isOver.store(true, ordering: .releasing) }

  // MARK: Orders

  /// Plays another file from its first sample on.
  mutating func play(_ path: String) {
    number &+= 1
    pending = .play(path: path, number: number)
    (isPlaying, hasBegun, plays, frames) = (true, false, 0, 0)
    sendPending()
  }

  /// Plays nothing any more.
  mutating func stop() {
    number &+= 1
    pending = .stop
    isPlaying = false
    sendPending()
  }

  private mutating func sendPending() {
    guard orders.hasRoom, let order = pending.take() else { return }
    orders.push(order)
  }

  /// Before samples are taken: sends what is due and lets go of what was brought for older orders.
  mutating func prepare() {
    sendPending()
    while let front = pieces.peek({ $0 }), front.number != number || !isPlaying { drop() }
    if pumps { feed.pump() }
  }

  private mutating func drop() {
    _ = pieces.pop()
    popped += 1
    used = 0
  }

  // MARK: Sound

  /// Copies the next frames to the start of `target` and answers how many there were; fewer when the feed is behind, or with
  /// news, which ends the copy: call again.
  mutating func take(
    _ count: Int, into target: UnsafeMutableBufferPointer<Float>
  ) -> (count: Int, news: News?) {
    var done = 0
    while isPlaying, done < count, let piece = pieces.peek({ $0 }) {
      switch piece.kind {
      case .sound:
        let part = min(count - done, piece.count - used)
        unsafe copy(part, to: unsafe target, at: done)
        done += part
        used += part
        frames += part
        if used == piece.count { drop() }
      case .began:
        textCount = piece.count
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
        textCount = piece.count
        return (done, .failed)
      }
    }
    return (done, nil)
  }

  private func copy(_ count: Int, to target: UnsafeMutableBufferPointer<Float>, at offset: Int) {
    let source = unsafe line.slot(popped)
    let channels = line.channels
    for index in 0..<count * channels {
      unsafe target[offset * channels + index] = unsafe source[used * channels + index]
    }
  }

  /// The path that began, or the words of the failure: until `settle`.
  var text: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get {
      let bytes = unsafe line.bytes(popped).extracting(0..<textCount)
      return unsafe _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
    }
  }

  /// Takes note of news whose text has been read.
  mutating func settle(_ news: News) {
    switch news {
    case .began: hasBegun = true
    case .failed: isPlaying = false
    case .completed: return
    }
    drop()
  }
}
