internal import Glibc
internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles
internal import Synchronization

/// Delivers audio files to a node, decoded, at its rate and channels, about a second ahead. Blocks and allocates: never on a voice
/// worker, except on a virtual clock, where the node calls `pump` itself.
@safe
final class FileFeed: @unchecked Sendable {
  /// What the next chunk will be.
  private enum Stage {
    case idle
    case beginning
    case playing
    case turning
    case failing(String)
  }

  private let queues: FeedQueues
  private let rate: Int
  private var chunks: RingWriter<FeedChunk>
  private var commands: RingReader<FeedCommand>
  private var pushed = 0

  private var stage = Stage.idle
  private var number: UInt32 = 0
  private var path = ""
  private var file: ResampledFile?

  /// Microseconds the thread sleeps when it has nothing to do: with a file a quarter of a chunk; without one, a delay nobody notices.
  /// It is not woken: the node takes chunks and sends commands on a voice worker, which must not make system calls.
  private static let shortSleep: UInt32 = 5_000
  private static let longSleep: UInt32 = 20_000

  init(
    _ queues: FeedQueues, rate: Int, chunks: consuming RingWriter<FeedChunk>,
    commands: consuming RingReader<FeedCommand>
  ) {
    self.queues = queues
    self.rate = rate
    self.chunks = chunks
    self.commands = commands
  }

  /// Runs on the thread until the node is destroyed.
  func run() {
    while !queues.isOver.load(ordering: .acquiring) {
      pump()
      if case .idle = stage { usleep(Self.longSleep) } else { usleep(Self.shortSleep) }
    }
  }

  /// Executes the node's commands and fills the queue.
  func pump() {
    while let command = commands.pop() { execute(command) }
    while chunks.hasRoom, pushNext() {}
  }

  private func execute(_ command: FeedCommand) {
    file = nil
    stage = .idle
    guard case .play(let path, let number) = command else { return }
    self.path = path
    self.number = number
    do throws(NodeProblem) {
      file = try ResampledFile(path, rate: rate, channels: queues.channels)
      stage = .beginning
    } catch {
      stage = .failing(error.description)
    }
  }

  /// Pushes the next chunk; false when there is none.
  private func pushNext() -> Bool {
    switch stage {
    case .idle: return false
    case .beginning:
      push(.began, text: path)
      stage = .playing
    case .turning:
      push(.turned, 0)
      stage = .playing
    case .failing(let message):
      push(.failed, text: message)
      file = nil
      stage = .idle
    case .playing: return pushAudio()
    }
    return true
  }

  private func pushAudio() -> Bool {
    guard let file else { return false }
    do throws(NodeFault) {
      let (count, hasEnded) = try unsafe file.read(into: queues.slot(pushed))
      if hasEnded { stage = try file.rewind() ? .turning : .failing("\"\(path)\" holds no audio") }
      if count > 0 { push(.sound, count) }
    } catch {
      stage = .failing(file.message(error))
    }
    return true
  }

  private func push(_ kind: FeedChunk.Kind, _ count: Int) {
    chunks.push(FeedChunk(kind: kind, number: number, count: count))
    pushed += 1
  }

  private func push(_ kind: FeedChunk.Kind, text: String) {
    let bytes = unsafe queues.bytes(pushed)
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
