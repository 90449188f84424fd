internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import Synchronization

/// A screen or camera read on a thread of its own, because reading waits for the next picture. Keeps the newest only.
final class CaptureThread: Sendable {
  /// What there is for the node.
  struct Catch {
    /// The newest picture; nil when it was fetched already.
    var newest: DecodedPicture?
    /// Pictures that could not be decoded, so far.
    var damage = 0
    /// Why the device is gone, once it is.
    var ending: String?
  }

  private let shared = Locked(Catch())
  private let isStopped = Atomic<Bool>(false)
  private let waker: Waker

  private init(_ waker: Waker) { self.waker = waker }

  /// Opens the device and starts to read it.
  static func start(_ place: Demuxer.Place, waker: Waker) throws(NodeProblem) -> CaptureThread {
    let demuxer = try Demuxer(place)
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_VIDEO) else {
      throw demuxer.problem("gives no pictures, only \(demuxer.streamNames)", cure: nil)
    }
    let decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: 1)
    let capture = CaptureThread(waker)
    let source = Source(demuxer: demuxer, decoder: decoder)
    guard OwnThread.start("millrace-grab", { capture.run(source) }) == 0 else {
      throw NodeProblem(
        "no thread is left for \(place.name)", cure: "raise the limit of processes (ulimit -u)")
    }
    return capture
  }

  /// Handed to the thread, which alone uses it from then on.
  private final class Source: @unchecked Sendable {
    let demuxer: Demuxer
    let decoder: StreamDecoder
    init(demuxer: Demuxer, decoder: StreamDecoder) {
      self.demuxer = demuxer
      self.decoder = decoder
    }
  }

  private func run(_ source: Source) {
    var ending = "it gives no more pictures"
    do throws(NodeFault) {
      while !isStopped.load(ordering: .acquiring), try source.decoder.next() {
        guard let picture = DecodedPicture(source.decoder, time: Self.time(source.decoder)) else { break }
        let damage = source.decoder.damageCount
        shared.withLock { shared in
          shared.newest = picture
          shared.damage = damage
        }
        waker.wake()
      }
      if source.demuxer.isCut, let words = source.demuxer.words.text { ending = words }
    } catch  where error.code == PictureBound.fault && error.reason == .custom {
      let (width, height) = PictureBound.size(error)
      ending =
        "it gives pictures of \(width)x\(height), more than \(PictureHeader.mostPixels) pixels; set it to a smaller size"
    } catch {
      ending = source.decoder.lastMessage ?? source.demuxer.words.text ?? LibraryMessage.describe(error.code)
    }
    let words = ending
    shared.withLock { $0.ending = words }
    waker.wake()
  }

  /// When the picture was taken: devices stamp by the wall clock, which is read beside the monotonic one. A stamp that makes no
  /// sense is replaced by now.
  private static func time(_ decoder: StreamDecoder) -> Nanoseconds {
    var wall = timespec()
    _ = unsafe clock_gettime(CLOCK_REALTIME, &wall)
    let now = Clock(.realtime).now
    guard let stamp = decoder.time else { return now }
    let age = Int64(wall.tv_sec) &* 1_000_000_000 &+ Int64(wall.tv_nsec) &- stamp
    return (0...10_000_000_000).contains(age) ? now &- age : now
  }

  // MARK: The node's side

  /// Takes what there is. The lock is held by either side for an assignment only.
  func fetch() -> Catch {
    shared.withLock { shared in
      defer { shared.newest = nil }
      return shared
    }
  }

  /// Lets the thread end after the picture it waits for. Waits for nothing.
  func stop() { isStopped.store(true, ordering: .releasing) }
}
