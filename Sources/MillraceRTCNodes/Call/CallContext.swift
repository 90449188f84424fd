internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSound
internal import MillraceService
internal import Synchronization

/// What the parts of a call share. On the thread of its loop.
final class CallContext {
  /// Events that wait for room in the exchange at most. Beyond it the oldest goes, but no answer: those are bounded by the commands.
  private static let mostEvents = 1_000

  let exchange: RTCExchange
  let settings: RTCCallSettings
  let loop: RTCLoop
  let clock = Clock(.realtime)
  var entry: RTCLoop.Entry?
  /// What happened since the last run: sessions must not be ended within their reports.
  private var inputs: [CallInput] = []
  private var events: [(record: [UInt8], isAnswer: Bool)] = []
  /// Ends of sources that found no room.
  private var ends: [(kind: UInt8, source: UInt64)] = []
  /// Events `track` that were posted.
  private var sending: Set<DialogTrack> = []
  /// When peers asked for a key frame last.
  private var keyFrameAt: Nanoseconds?
  private var repeated = RepeatedErrors()

  init(_ exchange: RTCExchange, _ settings: RTCCallSettings, _ loop: RTCLoop) {
    self.exchange = exchange
    self.settings = settings
    self.loop = loop
  }

  // MARK: Inputs

  /// Leaves something for the next run.
  func note(_ input: CallInput) {
    inputs.append(input)
    entry?.wake()
  }

  func takeInputs() -> [CallInput] {
    defer { inputs = [] }
    return inputs
  }

  // MARK: To the node

  /// Too many events wait for the node: no further command is carried out until it has read some.
  var isCrowded: Bool { events.count > Self.mostEvents / 2 }

  /// Nothing waits for room.
  var isEmpty: Bool { events.isEmpty && ends.isEmpty }

  func post(_ event: DialogEvent) {
    var isAnswer = false
    if case .answer = event { isAnswer = true }
    append(EventRecord.bytes(event, limit: settings.eventBytes), isAnswer: isAnswer)
  }

  private func append(_ record: [UInt8], isAnswer: Bool) {
    if events.count >= Self.mostEvents, let index = events.firstIndex(where: { !$0.isAnswer }) {
      events.remove(at: index)
    }
    events.append((record, isAnswer))
    move()
  }

  /// Posts an error that a peer can cause without end: at most one a second of a kind.
  func post(_ kind: RepeatedErrors.Kind, _ error: DialogError) {
    if let report = repeated.note(error, kind, at: clock.now) { postReport(report) } else { entry?.wake() }
  }

  /// Posts those that were left out, once they are due. Returns when to call again.
  /// - Parameter isLast: all are due.
  @discardableResult
  func postRepeated(at now: Nanoseconds, isLast: Bool = false) -> Nanoseconds? {
    for report in repeated.takeDue(at: now, isLast: isLast) { postReport(report) }
    return repeated.deadline
  }

  private func postReport(_ report: RepeatedErrors.Report) {
    let count = report.count > 1 ? report.count : nil
    append(EventRecord.bytes(.error(report.error), count: count, limit: settings.eventBytes), isAnswer: false)
  }

  /// Hands over what there is room for.
  func move() {
    var moved = 0
    for (record, _) in events {
      // The largest: a record beyond it would never find room.
      guard record.count <= settings.eventBytes + 512, exchange.events.hasRoom(record.count) else { break }
      unsafe exchange.events.put(MediaRecord.event, count: record.count) { target in
        for index in record.indices { unsafe target[index] = record[index] }
      }
      moved += 1
    }
    events.removeFirst(moved)
    let before = ends.count
    ends.removeAll { put(end: $0.kind, $0.source) }
    if moved > 0 || ends.count != before { exchange.waker.wake() }
  }

  /// A source of sound or pictures has ended: `MediaRecord.soundEnd` or `pictureEnd`.
  func post(end kind: UInt8, of source: UInt64) {
    guard ends.isEmpty, put(end: kind, source) else { return ends.append((kind, source)) }
    exchange.waker.wake()
  }

  private func put(end kind: UInt8, _ source: UInt64) -> Bool {
    if kind == MediaRecord.soundEnd {
      let count = SoundDownHead.byteCount
      guard exchange.soundDown.hasRoom(count) else { return false }
      let head = SoundDownHead(
        source: source, sequence: 0, timestamp: 0, arrival: clock.now, capture: 0, codec: 0, level: 255,
        marker: false, restarts: false)
      unsafe exchange.soundDown.put(kind, count: count) { unsafe head.store(to: $0) }
    } else {
      let count = PictureDownHead.byteCount
      guard exchange.pictureDown.hasRoom(count) else { return false }
      let head = PictureDownHead(
        source: source, arrival: clock.now, timestamp: 0, capture: 0, codec: 0, isKey: false,
        isDamaged: false, followsLoss: false)
      unsafe exchange.pictureDown.put(kind, count: count) { unsafe head.store(to: $0) }
    }
    return true
  }

  // MARK: Once for all sessions

  /// The first packet of a track was sent.
  func noteSent(_ track: DialogTrack) {
    guard sending.insert(track).inserted else { return }
    post(.track(track, .sending))
  }

  /// A peer asks for a key frame; many viewers that do so at once are answered by one.
  func noteKeyFrameWish() {
    let now = clock.now
    if let keyFrameAt, now - keyFrameAt < .milliseconds(300) { return }
    keyFrameAt = now
    exchange.keyFrames.add(1, ordering: .releasing)
    post(.extra(name: "keyframeRequested", payload: .object([])))
    exchange.waker.wake()
  }
}
