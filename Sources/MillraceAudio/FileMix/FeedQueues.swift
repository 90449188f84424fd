internal import MillraceCore
internal import Synchronization

/// A command from the node to its feed.
enum FeedCommand: Sendable {
  /// Open a file and deliver it from its first sample, over and over. Its chunks carry the number.
  case play(path: String, number: UInt32)
  /// Close the file.
  case stop
}

/// What the feed delivers next. Its content is in the slot with the same index.
struct FeedChunk: Sendable {
  enum Kind: UInt8 {
    /// The file is open; the slot holds its path.
    case began
    /// Interleaved samples, `count` frames of them.
    case sound
    /// The file was delivered to its end and starts again.
    case turned
    /// The file cannot be read, or no longer; the slot holds the message.
    case failed
  }

  var kind: Kind
  /// Number of the command it answers.
  var number: UInt32
  /// Frames of audio, or bytes of text.
  var count: Int
}

/// The queues between a node and its feed: chunks one way, commands the other, each with one writer and one reader.
///
/// Slot n belongs to chunk n: the feed writes it before pushing the chunk, the node reads it before popping.
@safe
final class FeedQueues: @unchecked Sendable {
  /// Duration of a chunk in milliseconds, and how many chunks the feed runs ahead: a second and a quarter.
  static let chunkMilliseconds = 20.0
  static let chunks = 64
  static let commands = 16

  /// Frames of audio per slot, and its channels.
  let frames: Int
  let channels: Int
  /// Set when the node is destroyed.
  let isOver = Atomic(false)
  private let slots: UnsafeMutableBufferPointer<Float>

  init(frames: Int, channels: Int) {
    self.frames = frames
    self.channels = channels
    unsafe slots = .allocate(capacity: Self.chunks * frames * channels)
    unsafe slots.initialize(repeating: 0)
  }

  deinit { unsafe slots.deallocate() }

  /// The slot of chunk n.
  func slot(_ number: Int) -> UnsafeMutableBufferPointer<Float> {
    let start = number % Self.chunks * frames * channels
    return unsafe UnsafeMutableBufferPointer(rebasing: slots[start..<start + frames * channels])
  }

  /// The slot of chunk n as bytes.
  func bytes(_ number: Int) -> UnsafeMutableBufferPointer<UInt8> {
    unsafe UnsafeMutableRawBufferPointer(slot(number)).bindMemory(to: UInt8.self)
  }
}
