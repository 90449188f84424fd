internal import MillraceCore

/// What events and commands mean to a turn machine. Without the heap.
enum TurnWords {
  /// Utterances that one reply is believed to have. A service may say any number, and each of them would be waited for.
  private static let mostUtterances = 10_000

  /// An event of a service. nil: it says nothing about turns.
  static func service(_ event: borrowing EventGlance) -> TurnInput? {
    if event.has("event", "state") { return state(event) }
    if event.has("event", "speechStarted") { return .speechStarted }
    if event.has("event", "speechEnded") { return .speechEnded }
    if event.has("event", "replyStarted") { return .replyStarted }
    if event.has("event", "replyEnded") {
      return .replyEnded(utterances: min(max(0, event.integer("utterances") ?? 1), mostUtterances))
    }
    if event.has("event", "interrupted") { return .serviceInterrupted }
    if event.has("event", "connected") { return .connected }
    if event.has("event", "error") { return event.has("reaction", "goOn") ? .failed : nil }
    if event.has("event", "gate") {
      let isOn = event.isTrue("on")
      return event.has("gate", "muted") ? .muted(isOn) : .uninterruptible(isOn)
    }
    return nil
  }

  private static func state(_ event: borrowing EventGlance) -> TurnInput? {
    if event.has("state", "listening") { return .serviceListening }
    if event.has("state", "thinking") { return .serviceThinking }
    if event.has("state", "responding") { return .serviceResponding }
    if event.has("state", "connecting") { return .start }
    if event.has("state", "reconnecting") { return .reconnecting }
    if event.has("state", "closed") { return .closed }
    return nil
  }

  /// An event of playback. Those with an input go on to the service too.
  static func playback(_ event: borrowing EventGlance) -> TurnInput? {
    guard let number = event.integer("reply"), let reply = UInt32(exactly: number) else { return nil }
    let samples = event.integer("samples") ?? 0
    let time = event.integer("ms") ?? 0
    if event.has("event", "replyAudible") { return .audible(reply: reply) }
    if event.has("event", "replyFinished") {
      return .finished(reply: reply, samples: samples, milliseconds: time)
    }
    if event.has("event", "interrupted") { return .cut(reply: reply, samples: samples, milliseconds: time) }
    return nil
  }

  /// An event of a voice detector.
  static func voice(_ event: borrowing EventGlance) -> TurnInput? {
    let delay = Nanoseconds(min(max(0, event.integer("delay") ?? 0), 10_000)) &* 1_000_000
    if event.has("event", "speechStarted") { return .voiceStarted(ago: delay) }
    if event.has("event", "speechEnded") { return .voiceEnded(ago: delay) }
    return nil
  }

  /// What a command is to the machine.
  enum Command {
    case input(TurnInput)
    /// A question or words to be said, which wait for their turn.
    case question
    /// Nothing about turns: straight on to the service.
    case other
  }

  /// A command. nil: it is none.
  static func command(_ text: borrowing EventGlance) -> Command? {
    guard text.contains("command") else { return nil }
    if text.has("command", "startSpeech") { return .input(.press) }
    if text.has("command", "stopSpeech") { return .input(.release) }
    if text.has("command", "cancelSpeech") { return .input(.cancel) }
    if text.has("command", "interrupt") { return .input(.interrupt) }
    if text.has("command", "hangUp") { return .input(.hangUp) }
    if text.has("command", "ask") || text.has("command", "say") { return .question }
    return .other
  }
}
