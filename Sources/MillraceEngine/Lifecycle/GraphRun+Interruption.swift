internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Barge-in: a reply of the bot can be cancelled, or ducked while it is not yet known whether the user is speaking.
extension GraphRun {
  /// Cancels every reply so far, in one atomic step, however much is queued.
  ///
  /// Each packet carries the generation of its reply. Once a worker sees the new generation (at most one node call later), packets
  /// of older generations are stale and discarded wherever they are queued, on every lane; nodes discard what they hold of the
  /// reply; playback fades out and reports how many samples were played. Packets of generation 0 (the users' speech) and those
  /// marked `uninterruptible` are not affected. Ducking ends too. Any thread; takes about a microsecond, plus a system call when
  /// the graph's worker sleeps.
  public func interrupt() {
    reply.isDucked.store(false, ordering: .releasing)
    reply.counter.advance()
    reply.request(Strand.Request.interrupt, of: self)
  }

  /// Ducks the reply: each playback node holds or lowers it, as configured. Nothing is lost: `resume` undoes it, `interrupt`
  /// cancels the reply. Any thread; has no effect while already ducked.
  public func duck() throws(ControlProblem) {
    try checkPlayback("duck")
    setDucked(true)
  }

  /// Undoes `duck`: each reply continues with the sample after the last one played.
  public func resume() throws(ControlProblem) {
    try checkPlayback("resume")
    setDucked(false)
  }

  /// What `duck` and `resume` do, from any thread. Only the latest state counts: a resume right after a duck may leave nodes
  /// without either call.
  func setDucked(_ value: Bool) {
    guard reply.isDucked.exchange(value, ordering: .acquiringAndReleasing) != value else { return }
    reply.request(Strand.Request.duck, of: self)
  }

  private func checkPlayback(_ what: String) throws(ControlProblem) {
    guard phase != .stopped else {
      throw ControlProblem("the run has stopped, nothing to \(what)", .runStopped)
    }
    guard plan.nodes.contains(where: \.contract.playsReplies) else {
      throw ControlProblem(
        "no node of \"\(plan.name)\" plays replies, nothing to \(what); play them with audio.play",
        .noPlayback)
    }
  }
}
