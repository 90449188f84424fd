internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Barge-in: a reply of the bot can be voided for good, or held back while it is unclear whether anybody speaks.
extension GraphRun {
  /// Voids every reply up to now: one atomic step, whatever is queued.
  ///
  /// Packets carry the generation they were born in. From the moment a worker has heard of the new one (at most one call of a
  /// node later), packets of older generations are dropped wherever they wait, on every lane; nodes forget what they hold of
  /// the reply; playback fades out and tells how many samples were heard. Untouched are packets of generation 0 (what people
  /// say) and those marked `uninterruptible`. Ducking ends too. Any thread; about a microsecond, plus a system call where the
  /// graph's worker sleeps.
  public func interrupt() {
    reply.isDucked.store(false, ordering: .releasing)
    reply.counter.advance()
    reply.request(Strand.Request.interrupt, of: self)
  }

  /// Has the nodes that play replies make room for a voice: as each is set up, it holds the reply or lowers it. Nothing is
  /// lost: `resume` takes it back, `interrupt` makes it final. Any thread; again while ducked: nothing.
  public func duck() throws(ControlProblem) {
    try checkPlayback("duck")
    setDucked(true)
  }

  /// Takes `duck` back: each reply goes on with the sample after the last one that was heard.
  public func resume() throws(ControlProblem) {
    try checkPlayback("resume")
    setDucked(false)
  }

  /// What `duck` and `resume` do, from any thread. Only the state counts: a resume right after a duck may go unheard.
  func setDucked(_ value: Bool) {
    guard reply.isDucked.exchange(value, ordering: .acquiringAndReleasing) != value else { return }
    reply.request(Strand.Request.duck, of: self)
  }

  private func checkPlayback(_ what: String) throws(ControlProblem) {
    guard phase != .stopped else {
      throw ControlProblem("the run has stopped; there is nothing to \(what)", .runStopped)
    }
    guard plan.nodes.contains(where: \.contract.playsReplies) else {
      throw ControlProblem(
        "no node of \"\(plan.name)\" plays replies, so there is nothing to \(what); play them with audio.play"
      )
    }
  }
}
