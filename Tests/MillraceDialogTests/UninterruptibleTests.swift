import MillraceDialog
import Testing

/// Replies that the service does not allow to be interrupted.
@Suite("uninterruptible replies") struct UninterruptibleTests {
  private static let replies: [TurnState] = [.responding, .draining]

  private func gated(_ state: TurnState, _ mode: DialogMode) -> Turn {
    var turn = Turn.at(state, mode)
    turn(.uninterruptible(true))
    return turn
  }

  @Test("a command interrupts one only with force, and the service is asked with force", arguments: replies)
  func command(state: TurnState) {
    var turn = gated(state, .duplex)
    #expect(turn.machine.refusal(of: .interrupt()) == .uninterruptible)
    turn(.interrupt())
    #expect(turn.taken() == [] && turn.state == state)
    #expect(turn.machine.refusal(of: .interrupt(isForced: true)) == nil)
    turn(.interrupt(isForced: true))
    #expect(
      turn.taken() == [
        .bargedIn(by: .manual, afterMilliseconds: 0), .cancelReplies, .interrupt(isForced: true),
      ])
    #expect(turn.state == .yielding)
  }

  @Test("force is passed on where it was not needed, and not made up")
  func passedOn() {
    var turn = Turn.at(.responding, .duplex)
    turn(.interrupt(isForced: true))
    #expect(turn.taken().contains(.interrupt(isForced: true)))
    turn = Turn.at(.responding, .duplex)
    turn(.interrupt())
    #expect(turn.taken().contains(.interrupt(isForced: false)))
  }

  @Test("the button and a timeout end one, and ask the service with force", arguments: replies)
  func button(state: TurnState) {
    var turn = gated(state, .pushToTalk)
    turn(.press)
    #expect(turn.taken().contains(.interrupt(isForced: true)) && turn.state == .yielding)
    turn = gated(state, .pushToTalk)
    turn.pass(300_000 * 1_000_000)
    #expect(turn.taken().prefix(3) == [.timedOut(state), .cancelReplies, .interrupt(isForced: true)])
  }

  @Test("one that another node has cancelled is interrupted with force", arguments: replies)
  func cancelledElsewhere(state: TurnState) {
    var turn = gated(state, .duplex)
    turn(.replyCancelled)
    turn.pass(50 * 1_000_000)
    #expect(turn.taken() == [.interrupt(isForced: true)])
  }

  @Test("a question waits for its end, and the newest of several is asked once")
  func question() {
    var turn = gated(.responding, .pushToTalk)
    turn(.ask(), .ask())
    #expect(turn.taken() == [] && turn.state == .responding)
    turn(.replyEnded(utterances: 1), .finished(reply: 1, samples: 1, milliseconds: 1))
    #expect(turn.taken() == [.heard(reply: 1, samples: 1, milliseconds: 1, isWhole: true)])
    turn(.serviceListening)
    #expect(turn.taken() == [.passQuestion] && turn.state == .thinking)
  }

  @Test("a question with force interrupts it, also after one without")
  func forcedQuestion() {
    var turn = gated(.responding, .pushToTalk)
    turn(.ask())
    turn(.ask(isForced: true))
    #expect(
      turn.taken() == [
        .bargedIn(by: .manual, afterMilliseconds: 0), .cancelReplies, .interrupt(isForced: true),
      ])
    turn(.serviceListening)
    #expect(turn.taken() == [.passQuestion])
  }

  @Test("a question that waits for its end is dropped when the user speaks instead")
  func spokenInstead() {
    var turn = gated(.responding, .duplex)
    turn(.ask(), .uninterruptible(false), .speechStarted)
    #expect(turn.taken().contains(.dropQuestion) && turn.state == .hearing)
    var thinking = gated(.thinking, .duplex)
    thinking(.ask(), .speechStarted)
    #expect(thinking.taken().contains(.dropQuestion) && thinking.state == .hearing)
  }

  @Test("a command that would have no effect is refused: after the end, and for a button in duplex")
  func refusals() {
    for state in [TurnState.closing, .closed] {
      let turn = Turn.at(state, .pushToTalk)
      for input in [TurnInput.press, .release, .cancel, .interrupt(isForced: true), .hangUp] {
        #expect(turn.machine.refusal(of: input) == .ended)
      }
    }
    for state in [TurnState.idle, .connecting, .listening, .responding, .reconnecting] {
      #expect(Turn.at(state, .duplex).machine.refusal(of: .press) == .noButton)
      #expect(Turn.at(state, .duplex).machine.refusal(of: .release) == .noButton)
      #expect(Turn.at(state, .duplex).machine.refusal(of: .hangUp) == nil)
      #expect(Turn.at(state, .tapToTalk).machine.refusal(of: .press) == nil)
      #expect(Turn.at(state, .duplex).machine.refusal(of: .interrupt()) == nil)
    }
  }

  @Test("a new dialogue after the end has no gate of the one before")
  func beginAgain() {
    var turn = gated(.responding, .duplex)
    turn(.muted(true), .closed)
    #expect(turn.state == .closed)
    // A service that waits for `begin` is connecting next.
    turn(.start, .serviceListening, .serviceThinking, .replyStarted)
    turn.actions = []
    turn(.voiceStarted(ago: 0))
    #expect(turn.taken() == [.duck] && turn.state == .suspecting)
  }
}
