internal import MillraceJSON

/// Which events are open, which round is answered, and what was broken off. Ids are the cloud's and the session's own.
///
/// A packet of data carries no id: it belongs to the event that is open. An answer carries the id of its event; in a long event, and
/// wherever the cloud divides one, the id with a suffix. The ids of texts (`bizId`) are that id, or others with one number for all kinds.
struct TuyaTurns: Sendable {
  /// Who ends an event.
  enum Owner: Sendable, Hashable {
    /// The session: where speech ends; at once, as a question is complete.
    case voice, question
    /// The program, which has begun it by name.
    case program
  }

  /// An event that is open here.
  struct Event: Sendable {
    var id: String
    var owner: Owner
    /// The channel of the user's audio, while it is part of the event.
    fileprivate(set) var voice: TuyaChannelName?
    /// Channels with data whose end was not told.
    fileprivate(set) var channels: [TuyaChannelName] = []
    /// Something was sent in it that can be answered.
    fileprivate(set) var hasData = false
  }

  /// How many broken events, and texts of such, are remembered.
  private static let remembered = 32

  /// The event that is open.
  private(set) var open: Event?
  /// The event that has ended here, and is answered; nil: it was answered.
  private(set) var awaited: String?
  /// The round that the cloud has named last, and not ended.
  private(set) var round: String?
  /// The cloud announces its rounds: `EventStart` has come.
  private(set) var announces = false
  /// Broken events, and whether all of their rounds are.
  private var broken: [(id: String, isWhole: Bool)] = []
  /// Texts of the present round, of broken ones, and of those that have ended, without their kinds.
  private var keys: [String] = [], brokenKeys: [String] = [], endedKeys: [String] = []

  /// The user's audio is part of the event that is open.
  var hasVoice: Bool { open?.voice != nil }

  /// An image is part of it.
  var hasImage: Bool { open?.channels.contains { $0.kind == .image } ?? false }

  /// The event that is open, or answered.
  var main: String? { open?.id ?? awaited }

  /// The round that is answered, as far as it is known.
  var current: String? { round ?? awaited }

  // MARK: Own events

  /// Begins an event.
  mutating func begin(_ id: String, _ owner: Owner, _ userData: JSONValue?) -> [TuyaCall] {
    open = Event(id: id, owner: owner)
    // A voice may be listened to while a question is answered.
    if owner != .voice { awaited = nil }
    if awaited == nil {
      if let round, !isRelated(round, to: id) { self.round = nil }
      keys = []
    }
    return [.startEvent(id, userData: userData)]
  }

  /// The user's audio is part of the open event from now on.
  mutating func beginVoice(_ channel: TuyaChannelName) -> [TuyaCall] {
    guard let id = open?.id else { return [] }
    open?.voice = channel
    note(channel)
    return [.beginVoice(event: id)]
  }

  /// The open event has data of a channel, whose end is to be told.
  mutating func note(_ channel: TuyaChannelName) {
    open?.hasData = true
    guard open?.channels.contains(channel) == false else { return }
    open?.channels.append(channel)
  }

  /// The stream of the user's audio ends.
  /// - Parameter isCut: what was kept of it is not sent.
  mutating func endVoice(isCut: Bool) -> [TuyaCall] {
    guard let channel = open?.voice else { return [] }
    open?.voice = nil
    return [.endVoice(isCut: isCut)] + endPayloads(channel, nil)
  }

  /// All data of a channel was sent.
  mutating func endPayloads(_ channel: TuyaChannelName, _ userData: JSONValue?) -> [TuyaCall] {
    guard let id = open?.id else { return [] }
    var calls: [TuyaCall] = []
    if channel == open?.voice {
      open?.voice = nil
      calls.append(.endVoice(isCut: false))
    }
    open?.channels.removeAll { $0 == channel }
    return calls + [.endPayloads(event: id, channel, userData: userData)]
  }

  /// The open event is complete, and is answered now.
  mutating func end(_ userData: JSONValue?) -> [TuyaCall] {
    var calls = endVoice(isCut: false)
    for channel in open?.channels ?? [] { calls += endPayloads(channel, nil) }
    guard let id = open?.id else { return calls }
    awaited = id
    open = nil
    return calls + [.endEvent(id, userData: userData)]
  }

  /// The open event is broken off: nothing of it is answered.
  mutating func breakOpen(_ userData: JSONValue? = nil) -> [TuyaCall] {
    guard let id = open?.id else { return [] }
    let calls = abandon()
    breakOff(id, isWhole: true)
    return calls + [.breakEvent(id, userData: userData)]
  }

  /// The open event is over for the cloud: nothing more of it is sent.
  mutating func abandon() -> [TuyaCall] {
    defer { open = nil }
    return open?.voice == nil ? [] : [.endVoice(isCut: true)]
  }

  // MARK: The cloud's

  /// The cloud begins a round.
  mutating func announce(_ id: String) {
    announces = true
    note(id)
  }

  /// The cloud names a round. In a long event its own id is not one.
  mutating func note(_ id: String) {
    guard !id.isEmpty, id != open?.id, id != round else { return }
    if round != nil { keys = [] }
    round = id
  }

  /// The cloud has ended a round.
  mutating func ended(_ id: String) {
    if id == round || id.isEmpty { round = nil }
    if let awaited, id.isEmpty || isRelated(id, to: awaited) { self.awaited = nil }
    for key in keys { add(key, to: &endedKeys) }
    keys = []
  }

  /// True for the id of the event that is open or answered, and of its rounds.
  func isOwn(_ id: String) -> Bool {
    [open?.id, awaited].contains { own in own.map { isRelated(id, to: $0) } ?? false }
  }

  /// True for a round of the event that is open, while another is answered.
  private func isBesideAnswer(_ id: String) -> Bool {
    guard awaited != nil, let open else { return false }
    return isRelated(id, to: open.id)
  }

  /// The event that is answered is broken off; empty: none is.
  mutating func breakAwaited() -> [TuyaCall] {
    guard let id = awaited, id != open?.id else { return [] }
    breakOff(id, isWhole: true)
    return [.breakEvent(id, userData: nil)]
  }

  /// True for an event that has nothing to do with what is open or answered.
  func isForeign(_ id: String) -> Bool {
    guard !id.isEmpty, id != round else { return false }
    return main != nil && !isOwn(id)
  }

  private func isRelated(_ id: String, to main: String) -> Bool { id.hasPrefix(main) }

  // MARK: Texts

  /// The round that a text belongs to; nil: not known. Notes it, where the text names it.
  mutating func round(ofText id: String) -> String? {
    guard !id.isEmpty else { return current }
    add(Self.key(of: id), to: &keys)
    if isOwn(id) { note(id) }
    return current ?? id
  }

  /// True when a text belongs to another round than the one that is answered.
  /// - Parameters:
  ///   - other: the round that is answered, as far as it is known.
  ///   - isTranscribed: what was said in it is known completely.
  func isOther(_ id: String, than other: String?, isTranscribed: Bool = true) -> Bool {
    guard !id.isEmpty else { return false }
    if isBesideAnswer(id) { return true }
    if isOwn(id), id != open?.id, let other { return id != other }
    return isTranscribed && !keys.contains(Self.key(of: id))
  }

  /// True for a text of a round that has ended.
  func hasEnded(text id: String) -> Bool { !id.isEmpty && endedKeys.contains(Self.key(of: id)) }

  /// The id of a text without its kind: `asr-17` and `nlg-17` are of one round.
  static func key(of id: String) -> String {
    guard let dash = id.firstIndex(of: "-"), kinds.contains(id[..<dash].lowercased()) else { return id }
    return String(id[id.index(after: dash)...])
  }

  private static let kinds: Set<String> = ["asr", "nlg", "skill", "tts"]

  // MARK: Broken events

  /// Nothing of an event is taken any more.
  /// - Parameter isWhole: nor of its rounds.
  mutating func breakOff(_ id: String, isWhole: Bool) {
    broken.append((id, isWhole))
    if broken.count > Self.remembered { broken.removeFirst() }
    for key in keys { add(key, to: &brokenKeys) }
    keys = []
    if round == id || isWhole { round = nil }
    if let awaited, isRelated(id, to: awaited) { self.awaited = nil }
  }

  /// A text belongs to a round that is broken off, whatever its id.
  mutating func breakText(_ id: String) {
    if !id.isEmpty && !isOwn(id) { add(Self.key(of: id), to: &brokenKeys) }
  }

  /// True for a broken event, and for the rounds of one that is broken as a whole.
  func isBroken(_ id: String) -> Bool {
    guard !id.isEmpty else { return false }
    return broken.contains { entry in
      guard entry.id != id else { return true }
      guard entry.isWhole, isRelated(id, to: entry.id) else { return false }
      // A longer id of an event that is open may begin with that of a broken one.
      return !(main.map { $0.count > entry.id.count && isRelated(id, to: $0) } ?? false)
    }
  }

  /// True for a text of a broken event.
  func isBroken(text id: String) -> Bool {
    guard !id.isEmpty else { return false }
    return isBroken(id) || !isOwn(id) && brokenKeys.contains(Self.key(of: id))
  }

  private func add(_ key: String, to list: inout [String]) {
    guard !list.contains(key) else { return }
    list.append(key)
    if list.count > Self.remembered { list.removeFirst() }
  }
}

/// What the user says, as far as the cloud tells.
struct TuyaSpeech: Sendable {
  /// The user wants to speak as soon as it is possible.
  var isWanted = false
  var isMuted = false
  var isVideoMuted = false
  /// The user's audio has ended.
  var hasEnded = false
  /// The cloud hears nobody and takes no sound, until the user does something.
  var isAsleep = false
  /// The words of the round that is answered are final.
  var isTranscribed = false
  /// `speechStarted` was posted, and `speechEnded` was not.
  var isHeard = false
  /// The last text that was recognised: its id, and whether it was final.
  private var last: (id: String, isFinal: Bool)?

  /// True for the first text of an utterance.
  mutating func begins(_ id: String, isFinal: Bool) -> Bool {
    defer { last = (id, isFinal) }
    guard let last else { return true }
    return last.id != id || last.isFinal && !isFinal
  }

  /// What remains of it for another dialogue: the microphone and the camera.
  var atBeginning: TuyaSpeech {
    var result = TuyaSpeech()
    result.isMuted = isMuted
    result.isVideoMuted = isVideoMuted
    result.hasEnded = hasEnded
    return result
  }
}
