internal import MillraceCore
internal import Synchronization

/// What the node tells its feed.
enum FeedOrder: Sendable {
  /// Open a file and bring it from its first sample on, over and over. What is brought carries the number.
  case play(path: String, number: UInt32)
  /// Close the file.
  case stop
}

/// What the feed brings next. Its content lies in the slot of the same place.
struct FeedPiece: Sendable {
  enum Kind: UInt8 {
    /// The file is open; the slot holds its path.
    case began
    /// Interleaved samples, `count` frames of them.
    case sound
    /// The file was brought to its end and begins again.
    case turned
    /// The file cannot be had, or not any longer; the slot holds the words.
    case failed
  }

  var kind: Kind
  /// Of the order it answers.
  var number: UInt32
  /// Frames of sound, bytes of a text.
  var count: Int
}

/// The memory between a node and its feed: pieces one way, orders the other, each with one writer and one reader.
///
/// Slot n belongs to the n-th piece: the feed writes it before it pushes the piece, the node reads it before it pops.
@safe
final class FeedLine: @unchecked Sendable {
  /// Sound in a piece, in milliseconds, and how many pieces the feed runs ahead: a second and a quarter.
  static let pieceMilliseconds = 20.0
  static let pieces = 64
  static let orders = 16

  /// Frames of sound a slot holds, and its channels.
  let frames: Int
  let channels: Int
  /// Set when the node is gone.
  let isOver = Atomic(false)
  private let slots: UnsafeMutableBufferPointer<Float>

  init(frames: Int, channels: Int) {
    self.frames = frames
    self.channels = channels
    unsafe slots = .allocate(capacity: Self.pieces * frames * channels)
    unsafe slots.initialize(repeating: 0)
  }

  deinit { unsafe slots.deallocate() }

  /// The slot of the n-th piece.
  func slot(_ number: Int) -> UnsafeMutableBufferPointer<Float> {
    let start = number % Self.pieces * frames * channels
    return unsafe UnsafeMutableBufferPointer(rebasing: slots[start..<start + frames * channels])
  }

  /// The slot of the n-th piece as bytes.
  func bytes(_ number: Int) -> UnsafeMutableBufferPointer<UInt8> {
    unsafe UnsafeMutableRawBufferPointer(slot(number)).bindMemory(to: UInt8.self)
  }
}
