internal import Glibc
internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles
internal import Synchronization

/// Brings sound files to a node, decoded, at its rate and channels, about a second ahead. Blocks and allocates: never on a voice
/// worker, save on a virtual clock, where the node pumps it itself.
@safe
final class FileFeed: @unchecked Sendable {
  /// What stands at the head of the next piece.
  private enum Stage {
    case idle
    case beginning
    case playing
    case turning
    case failing(String)
  }

  private let line: FeedLine
  private let rate: Int
  private var pieces: RingWriter<FeedPiece>
  private var orders: RingReader<FeedOrder>
  private var pushed = 0

  private var stage = Stage.idle
  private var number: UInt32 = 0
  private var path = ""
  private var file: OpenFile?

  /// How long the thread sleeps when it has nothing to do: with a file a quarter of a piece, without one the ear's patience. Nobody
  /// wakes it: the node takes pieces and gives orders on a voice worker, where a system call has no place.
  private static let shortSleep: UInt32 = 5_000
  private static let longSleep: UInt32 = 20_000

  init(
    _ line: FeedLine, rate: Int, pieces: consuming RingWriter<FeedPiece>,
    orders: consuming RingReader<FeedOrder>
  ) {
    self.line = line
    self.rate = rate
    self.pieces = pieces
    self.orders = orders
  }

  /// The thread's work, until the node is gone.
  func run() {
    while !line.isOver.load(ordering: .acquiring) {
      pump()
      if case .idle = stage { usleep(Self.longSleep) } else { usleep(Self.shortSleep) }
    }
  }

  /// Does what the node asked for and fills the line.
  func pump() {
    while let order = orders.pop() { obey(order) }
    while pieces.hasRoom, bring() {}
  }

  private func obey(_ order: FeedOrder) {
    file = nil
    stage = .idle
    guard case .play(let path, let number) = order else { return }
    self.path = path
    self.number = number
    do throws(NodeProblem) {
      file = try OpenFile(path, rate: rate, channels: line.channels)
      stage = .beginning
    } catch {
      stage = .failing(error.description)
    }
  }

  /// Pushes the next piece; false when there is none.
  private func bring() -> Bool {
    switch stage {
    case .idle: return false
    case .beginning:
      push(.began, text: path)
      stage = .playing
    case .turning:
      push(.turned, 0)
      stage = .playing
    case .failing(let words):
      push(.failed, text: words)
      file = nil
      stage = .idle
    case .playing: return bringSound()
    }
    return true
  }

  private func bringSound() -> Bool {
    guard let file else { return false }
    do throws(NodeFault) {
      let (count, hasEnded) = try unsafe file.read(into: line.slot(pushed))
      if hasEnded { stage = try file.rewind() ? .turning : .failing("\"\(path)\" holds no sound") }
      if count > 0 { push(.sound, count) }
    } catch {
      stage = .failing(file.words(error))
    }
    return true
  }

  private func push(_ kind: FeedPiece.Kind, _ count: Int) {
    pieces.push(FeedPiece(kind: kind, number: number, count: count))
    pushed += 1
  }

  private func push(_ kind: FeedPiece.Kind, text: String) {
    let bytes = unsafe line.bytes(pushed)
    var text = text
    while text.utf8.count > bytes.count { text.removeLast() }
    var count = 0
    for byte in text.utf8 {
      unsafe bytes[count] = byte
      count += 1
    }
    push(kind, count)
  }
}
