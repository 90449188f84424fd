// Every input with an effect in a phase: the next phase, what happens to the user's audio where that changes, and the actions. What is
// not listed has no effect.

private let connected = ["greeting", "listening", "thinking", "responding", "playing", "yielding"]
private let alive = ["idle", "connecting", "waiting"] + connected

let sessionTable: [String] = messageRows + refusedRows + otherRows

/// What means the same in every phase of a connection.
private let messageRows: [String] = connected.flatMap { phase in
  [
    "\(phase) welcome: \(phase) [conversationStarted]", "\(phase) speechEnds: \(phase) [speechEnded]",
    "\(phase) unknown: \(phase) [unknown]", "\(phase) invalid: \(phase) [error network]",
  ]
}

/// What the service has no equivalent for, and texts while it does not listen.
private let refusedRows: [String] = alive.flatMap { phase in
  (["askAboutImage", "hangUpCall", "mute"] + (phase == "listening" ? [] : ["say", "ask"])).map {
    "\(phase) \($0): \(phase) [error request]"
  }
}

private let otherRows: [String] = [
  "idle start: connecting [state connecting, connect]",
  "idle hangUp: closed drop [disconnect, state closed, end]",
  "idle drain: closed drop [disconnect, state closed, end]",
  "connecting opened: greeting [connected, > hello]",
  "connecting lost: waiting [error network, disconnect, state reconnecting]",
  "connecting refused: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "connecting hangUp: closed drop [disconnect, state closed, end]",
  "connecting drain: closed drop [disconnect, state closed, end]",
  "greeting listening: listening send [state listening]",
  "greeting thinking: thinking send [state thinking]",
  "greeting responding: responding send [state responding, replyStarted]",
  "greeting speechBegins: greeting [speechStarted]",
  "greeting noReply: greeting [error tts]",
  "greeting badKey: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "greeting broken: waiting [error internal, disconnect, state reconnecting]",
  "greeting goodbye: closed drop [disconnect, state closed, end]",
  "greeting lost: waiting [error network, disconnect, state reconnecting]",
  "greeting refused: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "greeting hangUp: closed drop [> bye, disconnect, state closed, end]",
  "greeting drain: closed drop [> bye, disconnect, state closed, end]",
  "listening listening: listening [state listening]",
  "listening thinking: thinking [state thinking]",
  "listening responding: responding [state responding, replyStarted]",
  "listening speechBegins: listening [speechStarted]",
  "listening noReply: listening [error tts]",
  "listening badKey: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "listening broken: waiting keep [error internal, disconnect, state reconnecting]",
  "listening goodbye: closed drop [disconnect, state closed, end]",
  "listening lost: waiting keep [error network, disconnect, state reconnecting]",
  "listening refused: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "listening say: listening [> say]",
  "listening ask: listening [> say]",
  "listening hangUp: closed drop [> bye, disconnect, state closed, end]",
  "listening drain: closed drop [> bye, disconnect, state closed, end]",
  "thinking listening: listening [interrupted service, state listening]",
  "thinking thinking: thinking [interrupted service, state thinking]",
  "thinking responding: responding [state responding, replyStarted]",
  "thinking speechBegins: thinking [speechStarted]",
  "thinking noReply: yielding [error tts]",
  "thinking badKey: closed drop [error auth, interrupted service, disconnect, disconnect, state closed, fail]",
  "thinking broken: waiting keep [error internal, interrupted service, disconnect, state reconnecting]",
  "thinking goodbye: closed drop [disconnect, state closed, end]",
  "thinking lost: waiting keep [error network, interrupted service, disconnect, state reconnecting]",
  "thinking refused: closed drop [error auth, interrupted service, disconnect, disconnect, state closed, fail]",
  "thinking interrupt: yielding [interrupted local, > over]",
  "thinking hangUp: closed drop [interrupted local, > bye, disconnect, state closed, end]",
  "thinking drain: closed drop [> bye, disconnect, state closed, end]",
  "responding listening: listening [cancelReply, interrupted service, state listening]",
  "responding thinking: thinking [cancelReply, interrupted service, state thinking]",
  "responding responding: responding [cancelReply, interrupted service, state responding, replyStarted]",
  "responding speechBegins: yielding [speechStarted, cancelReply, interrupted user]",
  "responding complete: playing [endUtterance, replyEnded 1]",
  "responding noReply: yielding [error tts, cancelReply]",
  "responding badKey: closed drop [error auth, cancelReply, interrupted service, disconnect, disconnect, state closed, fail]",
  "responding broken: waiting keep [error internal, cancelReply, interrupted service, disconnect, state reconnecting]",
  "responding goodbye: closed drop [endUtterance, replyEnded 1, disconnect, state closed, end]",
  "responding audio: responding [deliver]",
  "responding lost: waiting keep [error network, cancelReply, interrupted service, disconnect, state reconnecting]",
  "responding refused: closed drop [error auth, cancelReply, interrupted service, disconnect, disconnect, state closed, fail]",
  "responding interrupt: yielding [cancelReply, interrupted local, > over]",
  "responding hangUp: closed drop [cancelReply, interrupted local, > bye, disconnect, state closed, end]",
  "responding replyCancelled: yielding [interrupted local, > over]",
  "responding drain: closed drop [endUtterance, replyEnded 1, > bye, disconnect, state closed, end]",
  "playing listening: listening [cancelReply, interrupted service, state listening]",
  "playing thinking: thinking [cancelReply, interrupted service, state thinking]",
  "playing responding: responding [cancelReply, interrupted service, state responding, replyStarted]",
  "playing speechBegins: yielding [speechStarted, cancelReply, interrupted user]",
  "playing noReply: yielding [error tts, cancelReply]",
  "playing badKey: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "playing broken: waiting keep [error internal, disconnect, state reconnecting]",
  "playing goodbye: closed drop [disconnect, state closed, end]",
  "playing lost: waiting keep [error network, disconnect, state reconnecting]",
  "playing refused: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "playing interrupt: yielding [cancelReply, interrupted local, > over]",
  "playing hangUp: closed drop [cancelReply, interrupted local, > bye, disconnect, state closed, end]",
  "playing finished: yielding [> over]",
  "playing replyCancelled: yielding [interrupted local, > over]",
  "playing drain: closed drop [> bye, disconnect, state closed, end]",
  "yielding listening: listening [state listening]",
  "yielding speechBegins: yielding [speechStarted]",
  "yielding noReply: yielding [error tts]",
  "yielding badKey: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "yielding broken: waiting keep [error internal, disconnect, state reconnecting]",
  "yielding goodbye: closed drop [disconnect, state closed, end]",
  "yielding lost: waiting keep [error network, disconnect, state reconnecting]",
  "yielding refused: closed drop [error auth, disconnect, disconnect, state closed, fail]",
  "yielding hangUp: closed drop [> bye, disconnect, state closed, end]",
  "yielding drain: closed drop [> bye, disconnect, state closed, end]",
  "waiting hangUp: closed drop [disconnect, state closed, end]",
  "waiting drain: closed drop [disconnect, state closed, end]",
]
