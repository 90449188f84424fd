internal import MillraceCore

/// Translates events and commands into inputs of the turn machine. Does not allocate.
enum TurnMessages {
  /// The most utterances one reply may have. A service may claim any number, and the machine waits for each.
  private static let mostUtterances = 10_000

  /// The input for an event of a service, or nil when it does not concern turns.
  static func service(_ event: borrowing EventPeek) -> TurnInput? {
    if event.has("event", "state") { return state(event) }
    if event.has("event", "speechStarted") { return .speechStarted }
    if event.has("event", "speechEnded") { return .speechEnded }
    if event.has("event", "replyStarted") { return .replyStarted }
    if event.has("event", "replyEnded") {
      return .replyEnded(utterances: min(max(0, event.integer("utterances") ?? 1), mostUtterances))
    }
    if event.has("event", "interrupted") { return .serviceInterrupted }
    if event.has("event", "connected") { return .connected }
    if event.has("event", "error") {
      // Only an error of the reply ends one: a refused command must not cut off the answer being heard. Who names no scope, a backend
      // of one's own for example, speaks of the reply.
      let isOfReply =
        event.contains("scope") ? event.has("scope", "reply") : event.has("reaction", "continue")
      return isOfReply ? .failed : nil
    }
    if event.has("event", "gate") {
      let isOn = event.isTrue("on")
      if event.has("gate", "muted") { return .muted(isOn) }
      return event.has("gate", "uninterruptible") ? .uninterruptible(isOn) : nil
    }
    return nil
  }

  private static func state(_ event: borrowing EventPeek) -> TurnInput? {
    if event.has("state", "listening") { return .serviceListening }
    if event.has("state", "thinking") { return .serviceThinking }
    if event.has("state", "responding") { return .serviceResponding }
    if event.has("state", "connecting") { return .start }
    if event.has("state", "reconnecting") { return .reconnecting }
    if event.has("state", "closed") { return .closed }
    return nil
  }

  /// The input for an event of playback, or nil. Those with an input are also passed on to the service.
  static func playback(_ event: borrowing EventPeek) -> TurnInput? {
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

  /// The input for an event of a voice detector, or nil.
  static func voice(_ event: borrowing EventPeek) -> TurnInput? {
    let delay = Nanoseconds(min(max(0, event.integer("delay") ?? 0), 10_000)) &* 1_000_000
    if event.has("event", "speechStarted") { return .voiceStarted(ago: delay) }
    if event.has("event", "speechEnded") { return .voiceEnded(ago: delay) }
    return nil
  }

  /// The meaning of a command for the machine.
  enum Command {
    case input(TurnInput)
    /// A question or a text to speak, which waits for its turn.
    case question(isForced: Bool)
    /// Does not concern turns: passed straight on to the service.
    case other
  }

  /// False for a question that every service refuses: nothing would follow it.
  private static func isQuestion(_ command: borrowing EventPeek) -> Bool {
    guard let text = command.value(of: "text"), command.bytes[text.lowerBound] == UInt8(ascii: "\"") else {
      return false
    }
    let isEmpty = text.count <= 2 && !command.contains("images")
    guard let force = command.value(of: "force") else { return !isEmpty }
    return !isEmpty
      && (command.has(force, "true") || command.has(force, "false") || command.has(force, "null"))
  }

  /// The meaning of a command, or nil when it is not one.
  static func command(_ text: borrowing EventPeek) -> Command? {
    guard text.contains("command") else { return nil }
    if text.has("command", "startSpeech") { return .input(.press) }
    if text.has("command", "stopSpeech") { return .input(.release) }
    if text.has("command", "cancelSpeech") { return .input(.cancel) }
    if text.has("command", "interrupt") { return .input(.interrupt(isForced: text.isTrue("force"))) }
    // The end of one call is not the end of the dialogue.
    if text.has("command", "hangUp") { return text.contains("call") ? .other : .input(.hangUp) }
    if text.has("command", "ask") || text.has("command", "say"), isQuestion(text) {
      return .question(isForced: text.isTrue("force"))
    }
    return .other
  }
}
