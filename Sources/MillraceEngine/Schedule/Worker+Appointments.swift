internal import Glibc
internal import MillraceCore
internal import Synchronization

/// Appointments of runs on a virtual clock: the worker keeps them itself, between two steps of the clock.
extension Worker {
  /// Takes in a strand whose run has appointments. What is due already is done now.
  @inline(never)
  func takeAppointments(of strand: Strand) {
    if unsafe !appointed.contains(where: { $0 === strand }) { unsafe appointed.append(strand) }
    unsafe strand.run.appointments.keep(at: now &- strand.epoch)
    unsafe waitForDecision(about: strand.run)
  }

  /// The strand is retired: nothing of its run happens any more.
  func forgetAppointments(of strand: Strand) { unsafe appointed.removeAll { $0 === strand } }

  /// Nothing is ready. Moves the clock to the next appointment and keeps it, unless a timer is due before.
  func keepAppointments(before deadline: Nanoseconds?) -> Bool {
    var earliest = deadline ?? Nanoseconds.max
    var isFound = false
    for strand in unsafe appointed {
      guard let time = unsafe strand.run.appointmentTime(since: strand.epoch), time <= earliest else {
        continue
      }
      (earliest, isFound) = (time, true)
    }
    guard isFound else { return false }
    moveClock(to: earliest)
    for strand in unsafe appointed {
      unsafe strand.run.appointments.keep(at: earliest &- strand.epoch)
      unsafe waitForDecision(about: strand.run)
    }
    return true
  }

  /// On a virtual clock: the supervisor has been asked about a run, and time stands still until it has answered. That takes a
  /// few microseconds, or as long as a node is made: this thread only gives its processor away.
  func waitForDecision(about run: GraphRun) {
    while run.undecided.load(ordering: .acquiring) > 0 { sched_yield() }
  }
}

extension GraphRun {
  /// Time of the next appointment on the worker's clock; nil when there is none, or the graph is at its end.
  fileprivate func appointmentTime(since start: Nanoseconds) -> Nanoseconds? {
    let next = appointments.next
    guard next != Nanoseconds.max, liveCells.load(ordering: .relaxed) > 0 else { return nil }
    let (time, overflow) = next.addingReportingOverflow(start)
    return overflow ? nil : time
  }
}
