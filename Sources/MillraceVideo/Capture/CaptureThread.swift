internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import Synchronization

/// Reads a screen or camera on its own thread, because reading blocks until the next picture. Keeps only the newest.
final class CaptureThread: Sendable {
  /// What is new for the node.
  struct Update {
    /// The newest picture; nil if it was fetched already.
    var newest: DecodedPicture?
    /// Pictures that could not be decoded, so far.
    var damage = 0
    /// Why the device was lost, once it was.
    var ending: String?
  }

  /// Whether the thread reads; the values of `phase`.
  private enum Phase {
    static let reading = 0
    static let stopped = 1
    static let ended = 2
  }

  /// Threads that were stopped and have not closed their device yet, by the device.
  private static let closing = Locked<[String: Int]>([:])
  /// Longest wait for them, in milliseconds; chosen. A stalled camera delivers no picture that would end its thread.
  private static let longestClosing = 3_000

  private let shared = Locked(Update())
  private let phase = Atomic<Int>(Phase.reading)
  private let waker: Waker
  /// Which device it reads.
  private let device: String

  private init(_ device: String, _ waker: Waker) {
    self.device = device
    self.waker = waker
  }

  /// Opens the device and starts reading it, when threads that have read it before have closed it: a camera can be open only once. Blocks.
  static func start(_ place: Demuxer.Source, waker: Waker) throws(NodeProblem) -> CaptureThread {
    let device = "\(place.device ?? "") \(place.url)"
    waitForClosing(device)
    let demuxer = try Demuxer(place)
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_VIDEO) else {
      throw demuxer.problem("delivers no pictures, only \(demuxer.streamNames)", cure: nil)
    }
    let decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: 1)
    let capture = CaptureThread(device, waker)
    let parcel = Parcel(Source(demuxer: demuxer, decoder: decoder))
    guard DetachedThread.start("millrace-grab", { capture.run(parcel) }) == 0 else {
      throw NodeProblem(
        "the system cannot create another thread for \(place.name)",
        cure: "raise the limit of processes (ulimit -u)")
    }
    return capture
  }

  /// Owned by the thread, which alone uses it from then on.
  private final class Source: @unchecked Sendable {
    let demuxer: Demuxer
    let decoder: StreamDecoder
    init(demuxer: Demuxer, decoder: StreamDecoder) {
      self.demuxer = demuxer
      self.decoder = decoder
    }
  }

  private func run(_ parcel: Parcel<Source>) {
    if let source = parcel.take() { read(source) }
    // The device is closed.
    if phase.exchange(Phase.ended, ordering: .sequentiallyConsistent) == Phase.stopped { hasClosed() }
  }

  private func hasClosed() {
    Self.closing.withLock { closing in
      let rest = (closing[device] ?? 1) - 1
      closing[device] = rest > 0 ? rest : nil
    }
  }

  private static func waitForClosing(_ device: String) {
    for _ in 0..<longestClosing where closing.withLock({ $0[device] != nil }) { usleep(1_000) }
  }

  private func read(_ source: Source) {
    var ending = "it delivers no more pictures"
    do throws(NodeFault) {
      while phase.load(ordering: .acquiring) == Phase.reading, try source.decoder.next() {
        guard let picture = DecodedPicture(source.decoder, time: Self.time(source.decoder)) else { break }
        let damage = source.decoder.damageCount
        shared.withLock { shared in
          shared.newest = picture
          shared.damage = damage
        }
        waker.wake()
      }
      if source.demuxer.isCut, let words = source.demuxer.words.text { ending = words }
    } catch  where error.code == PictureLimit.fault && error.reason == .custom {
      let (width, height) = PictureLimit.size(error)
      ending =
        "it delivers pictures of \(width)x\(height), more than \(PictureHeader.defaultMaxPixels) pixels; set it to a smaller size"
    } catch {
      ending = source.decoder.lastMessage ?? source.demuxer.words.text ?? LibraryMessage.describe(error.code)
    }
    let words = ending
    shared.withLock { $0.ending = words }
    waker.wake()
  }

  /// Capture time of the picture. Devices use the wall clock, which is read together with the monotonic one. An implausible timestamp is
  /// replaced by the current time.
  private static func time(_ decoder: StreamDecoder) -> Nanoseconds {
    var wall = timespec()
    _ = unsafe clock_gettime(CLOCK_REALTIME, &wall)
    let now = Clock(.realtime).now
    guard let stamp = decoder.time else { return now }
    let age = Int64(wall.tv_sec) &* 1_000_000_000 &+ Int64(wall.tv_nsec) &- stamp
    return (0...10_000_000_000).contains(age) ? now &- age : now
  }

  // MARK: The node's side

  /// Takes what is new. Both sides hold the lock only for an assignment.
  func fetch() -> Update {
    shared.withLock { shared in
      defer { shared.newest = nil }
      return shared
    }
  }

  /// Whether there is a picture that was not fetched, and why the device was lost, once it was.
  var state: (hasPicture: Bool, ending: String?) { shared.withLock { ($0.newest != nil, $0.ending) } }

  /// Stops the thread after the picture it waits for. Call it once; does not block.
  func stop() {
    Self.closing.withLock { $0[device, default: 0] += 1 }
    if phase.exchange(Phase.stopped, ordering: .sequentiallyConsistent) == Phase.ended { hasClosed() }
  }
}
