internal import MillraceCore

/// What a double's avatar speaks: the double adds to it, and `double.avatar` renders it.
///
/// Sound is 16 kHz mono. Whatever is added follows what was added before. Any thread.
public final class AvatarVoice: Sendable {
  /// The sample rate in Hz.
  public static let rate = 16_000

  private enum Piece {
    case sound(ArraySlice<Int16>)
    case message(String)
    case flash
  }

  /// What belongs to one picture.
  struct Moment: Equatable {
    /// As many samples as were asked for; silence where nothing is spoken.
    var samples: [Int16]
    var messages: [String] = []
    /// The picture is white, and the sound begins with a click.
    var isFlash = false
  }

  private static let all = Locked<[Int: AvatarVoice]>([:])
  private static let latest = Locked(0)

  /// What the parameter `voice` of `double.avatar` names.
  public let number: Int
  private let pieces = Locked<[Piece]>([])

  /// Creates a voice that is silent.
  public init() {
    number = Self.latest.withLock { latest in
      latest += 1
      return latest
    }
    Self.all.withLock { $0[number] = self }
  }

  static func find(_ number: Int) -> AvatarVoice? { all.withLock { $0[number] } }

  /// Forgets the voice: no node finds it any more.
  public func close() { Self.all.withLock { $0[number] = nil } }

  /// Adds sound.
  public func speak(_ samples: [Int16]) {
    guard !samples.isEmpty else { return }
    pieces.withLock { $0.append(.sound(samples[...])) }
  }

  /// Adds a message, which goes with the picture of the sound around it.
  public func mark(_ message: String) { pieces.withLock { $0.append(.message(message)) } }

  /// Adds a flash with a click, by which a test finds how far picture and sound are apart. It begins with a picture.
  public func flash() { pieces.withLock { $0.append(.flash) } }

  /// Discards what waits.
  public func stop() { pieces.withLock { $0 = [] } }

  /// Samples that are still to be spoken.
  public var waiting: Int {
    pieces.withLock { pieces in
      pieces.reduce(0) { if case .sound(let samples) = $1 { $0 + samples.count } else { $0 } }
    }
  }

  /// Takes what belongs to the next picture.
  func take(_ count: Int) -> Moment {
    pieces.withLock { pieces in
      var moment = Moment(samples: [])
      moment.samples.reserveCapacity(count)
      var taken = 0
      loop: while taken < pieces.count {
        switch pieces[taken] {
        case .message(let text): moment.messages.append(text)
        case .flash:
          guard moment.samples.isEmpty && !moment.isFlash else { break loop }
          moment.isFlash = true
        case .sound(let samples):
          let room = count - moment.samples.count
          guard room > 0 else { break loop }
          moment.samples += samples.prefix(room)
          if samples.count > room {
            pieces[taken] = .sound(samples.dropFirst(room))
            break loop
          }
        }
        taken += 1
      }
      pieces.removeFirst(taken)
      moment.samples += [Int16](repeating: 0, count: count - moment.samples.count)
      return moment
    }
  }
}
