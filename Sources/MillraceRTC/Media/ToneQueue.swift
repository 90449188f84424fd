internal import MillraceCore
internal import MillraceRTCWire

/// Keys that wait to be sent as telephone events, one after another with silence between (RFC 4733 section 2.5.1).
struct ToneQueue {
  /// Keys that wait at most.
  static let most = 64
  /// Milliseconds of a key and of the silence behind it: no shorter than receivers recognize (ITU-T Q.24), no longer than a minute.
  static let milliseconds = 40...6_000
  static let gaps = 30...6_000

  private struct Key {
    var code: UInt8
    var duration: Nanoseconds
    var gap: Nanoseconds
  }

  private var keys: [Key] = []
  /// When the next key may begin.
  private var next: Nanoseconds = .min
  var sender: TelephoneEventSender

  init(clockRate: Int) {
    sender = TelephoneEventSender(clockRate: max(1, min(clockRate, 192_000)))
    keys.reserveCapacity(Self.most)
  }

  /// A key is being sent: the voice waits.
  var isSending: Bool { sender.isSending }

  /// Appends keys. False: one is none of 0 to 9, *, #, A to D, there is none, or too many wait; then nothing has changed.
  mutating func append(_ text: String, milliseconds: Int, gap: Int) -> Bool {
    let codes = text.compactMap { TelephoneEvent.code(of: $0) }
    guard !codes.isEmpty, codes.count == text.count, keys.count + codes.count <= Self.most else {
      return false
    }
    let duration = max(Self.milliseconds.lowerBound, min(milliseconds, Self.milliseconds.upperBound))
    let gap = max(Self.gaps.lowerBound, min(gap, Self.gaps.upperBound))
    for code in codes {
      keys.append(
        Key(code: code, duration: .milliseconds(Int64(duration)), gap: .milliseconds(Int64(gap))))
    }
    return true
  }

  /// Begins the next key when its time has come.
  /// - Parameter timestamp: that of now.
  mutating func begin(timestamp: UInt32, at now: Nanoseconds) {
    guard !sender.isSending, let key = keys.first, next <= now else { return }
    keys.removeFirst()
    _ = sender.start(key.code, duration: key.duration, timestamp: timestamp, at: now)
    next = now &+ key.duration &+ key.gap
  }

  /// When there is something to do; nil: nothing waits.
  var deadline: Nanoseconds? { sender.deadline ?? (keys.isEmpty ? nil : next) }
}
