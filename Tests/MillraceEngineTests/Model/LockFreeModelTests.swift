import Testing

/// Models of the engine's lock-free algorithms, step by step as in the code, in every order. Each also has a form that is known to
/// be wrong, to show that the search can find errors.
@Suite("Lock-free algorithms, in every order of their steps")
struct LockFreeModelTests {
  /// Asserts that the algorithm is correct, and that its wrong form is not.
  private func expect(_ right: Interleavings, _ wrong: [String: Interleavings]) {
    #expect(right.finding == nil)
    for (form, model) in wrong { #expect(model.finding != nil, "\(form), \(model.count) states") }
  }

  // MARK: The ring

  /// `RingWriter.push` and `RingReader.pop`, three elements through two slots.
  private func ring(publish: ModelStep.Order, free: ModelStep.Order) -> Interleavings {
    let (written, read, slots) = (0, 1, 2)
    var writer: [ModelStep] = []
    var reader: [ModelStep] = []
    for number in 0..<3 {
      writer += [
        .sleep(read) { number - $0 < 2 },
        .store(slots + number % 2, .relaxed) { _ in number + 1 },
        .store(written, publish) { _ in number + 1 },
      ]
      reader += [
        .sleep(written) { $0 > number },
        .load(slots + number % 2, into: 0),
        .check("read a slot that was not filled") { _, threads in threads[1][0] == number + 1 },
        // Moved out: the slot is uninitialized.
        .store(slots + number % 2, .relaxed) { _ in -1 },
        .store(read, free) { _ in number + 1 },
      ]
    }
    return Interleavings(memory: [0, 0, 0, 0], [writer, reader]) { memory, _ in
      memory[read] == 3 ? nil : "elements are left"
    }
  }

  @Test("ring: an element is written before its index is published, and moved out before its slot is free")
  func ring() {
    expect(
      ring(publish: .releasing, free: .releasing),
      [
        "the number before the element": ring(publish: .relaxed, free: .releasing),
        "the place before the element is gone": ring(publish: .releasing, free: .relaxed),
      ])
  }

  // MARK: Waking

  /// `Strand.wake`, `Worker.run`: two packets, each with a wake-up, and a worker that goes back to sleep.
  private func notify(looksFirst: Bool, clearsFirst: Bool) -> Interleavings {
    let (queued, remote, state, inbox) = (0, 1, 2, 3)
    var teller: [ModelStep] = []
    for number in 1...2 {
      teller += [
        .store(queued, .releasing) { _ in number },
        .exchange(remote, into: 0) { old, _ in old | 1 },
      ]
      if looksFirst {
        teller += [.load(state, into: 0), .jump("told \(number)") { $0[0] & 1 != 0 }]
      }
      teller += [
        .exchange(state, into: 0) { old, _ in old | 3 },
        .jump("told \(number)") { $0[0] & 1 != 0 },
        .exchange(inbox, into: 1) { _, _ in 1 },
        .label("told \(number)"),
      ]
    }
    let clear: [ModelStep] = [.exchange(state, into: 0) { _, _ in 1 }]
    let look: [ModelStep] = [
      .exchange(remote, into: 1) { _, _ in 0 },
      .jump("idle") { $0[1] == 0 },
      .load(queued, into: 2),
      .label("idle"),
    ]
    let worker: [ModelStep] =
      [.label("rest"), .sleep(inbox) { $0 == 1 }, .exchange(inbox, into: 0) { _, _ in 0 }, .label("turn")]
      + (clearsFirst ? clear + look : look + clear) + [
        .exchange(state, into: 0) { old, _ in old == 1 ? 0 : old },
        .jump("turn") { $0[0] != 1 },
        .jump("rest", if: { _ in true }),
      ]
    return Interleavings(memory: [0, 0, 0, 0], [teller, worker]) { _, threads in
      threads[1][2] == 2 ? nil : "a wake-up for a packet was lost"
    }
  }

  @Test("waking: the waker always changes the word, the woken thread clears it before it looks")
  func notify() {
    expect(
      notify(looksFirst: false, clearsFirst: true),
      [
        "told only when a load says that nobody is scheduled": notify(looksFirst: true, clearsFirst: true),
        "looked before the word was cleared": notify(looksFirst: false, clearsFirst: false),
      ])
  }

  /// `Inbox.push` and `Worker.sleepOrAdvanceClock`: a strand is posted while the thread goes to sleep.
  private func sleep(_ order: ModelStep.Order) -> Interleavings {
    let (inbox, sleeps) = (0, 1)
    let poster: [ModelStep] = [
      .exchange(inbox, into: 0) { _, _ in 1 },
      .load(sleeps, into: 0),
      .jump("awake") { $0[0] == 0 },
      .exchange(sleeps, into: 0) { _, _ in 0 },
      .label("awake"),
    ]
    let worker: [ModelStep] = [
      .store(sleeps, order) { _ in 1 },
      .load(inbox, into: 0),
      .jump("work") { $0[0] == 1 },
      .sleep(sleeps) { $0 == 0 },
      .label("work"),
      .store(sleeps, .sequential) { _ in 0 },
      .exchange(inbox, into: 1) { _, _ in 0 },
    ]
    return Interleavings(memory: [0, 0], [poster, worker]) { _, threads in
      threads[1][1] == 1 ? nil : "asleep with a strand in the inbox"
    }
  }

  @Test("sleeping: the flag is visible before the inbox is checked")
  func sleep() {
    expect(sleep(.sequential), ["a flag that comes late": sleep(.relaxed)])
  }

  /// `Link.hasRoomOrRequestsWake` and `Link.wakeWriter`: the ring is full, and one packet is taken.
  private func room(asksFirst: Bool, fences: Bool) -> Interleavings {
    let (read, waits, woken) = (0, 1, 2)
    let ask: [ModelStep] = [.store(waits, .sequential) { _ in 1 }, .fence]
    let look: [ModelStep] = [.load(read, into: 0), .jump("room") { $0[0] == 1 }]
    let writer: [ModelStep] =
      (asksFirst ? ask + look : look + ask) + [
        .sleep(woken) { $0 == 1 },
        .label("room"),
        .set(1) { _ in 1 },
      ]
    var reader: [ModelStep] = [.store(read, .releasing) { _ in 1 }]
    if fences { reader.append(.fence) }
    reader += [
      .load(waits, into: 0),
      .jump("nobody") { $0[0] == 0 },
      .store(waits, .relaxed) { _ in 0 },
      .exchange(woken, into: 0) { _, _ in 1 },
      .label("nobody"),
    ]
    return Interleavings(memory: [0, 0, 0], [writer, reader]) { _, threads in
      threads[0][1] == 1 ? nil : "the writer waits for room that is there"
    }
  }

  @Test(
    "room: the writer requests a wake-up before it checks again, the reader takes before it checks for requests"
  )
  func room() {
    expect(
      room(asksFirst: true, fences: true),
      [
        "asked after looking": room(asksFirst: false, fences: true),
        "taken without a fence": room(asksFirst: true, fences: false),
      ])
  }

  // MARK: Mail and wakers

  /// `Strand.wakeForMail` and `Worker.deliverMail`: two messages. `SupervisorWaker` works the same way.
  private func mail(clearsFirst: Bool) -> Interleavings {
    let (box, bit, ready) = (0, 1, 2)
    var sender: [ModelStep] = []
    for number in 1...2 {
      sender += [
        .store(box, .releasing) { _ in number },
        .exchange(bit, into: 0) { _, _ in 1 },
        .exchange(ready, into: 0) { _, _ in 1 },
      ]
    }
    let clear: ModelStep = .exchange(bit, into: 1) { _, _ in 0 }
    let read: ModelStep = .load(box, into: 2)
    let worker: [ModelStep] =
      [
        .label("rest"), .sleep(ready) { $0 == 1 }, .exchange(ready, into: 0) { _, _ in 0 },
        .load(bit, into: 1), .jump("rest") { $0[1] == 0 },
      ] + (clearsFirst ? [clear, read] : [read, clear]) + [.jump("rest", if: { _ in true })]
    return Interleavings(memory: [0, 0, 0], [sender, worker]) { _, threads in
      threads[1][2] == 2 ? nil : "a message was sent and not read"
    }
  }

  @Test("mail: its signal is cleared before the mailbox is read")
  func mail() {
    expect(mail(clearsFirst: true), ["read before the signal is cleared": mail(clearsFirst: false)])
  }

  /// `SupervisorWaker.wake` and `WokenRuns.take`: two events, a supervisor that checks now and then, and a last check.
  private func waker(stillsFirst: Bool) -> Interleavings {
    let (events, ringing, stack) = (0, 1, 2)
    var worker: [ModelStep] = []
    for number in 1...2 {
      worker += [
        .store(events, .releasing) { _ in number },
        .exchange(ringing, into: 0) { _, _ in 1 },
        .jump("rung \(number)") { $0[0] == 1 },
        .exchange(stack, into: 1) { _, _ in 1 },
        .label("rung \(number)"),
      ]
    }
    let still: ModelStep = .exchange(ringing, into: 1) { _, _ in 0 }
    let carry: ModelStep = .load(events, into: 2)
    let supervisor: [ModelStep] =
      [.label("look"), .sleep(stack) { $0 == 1 }, .exchange(stack, into: 0) { _, _ in 0 }]
      + (stillsFirst ? [still, carry] : [carry, still]) + [.jump("look", if: { _ in true })]
    return Interleavings(memory: [0, 0, 0], [worker, supervisor]) { _, threads in
      threads[1][2] == 2 ? nil : "an event was posted and not delivered"
    }
  }

  @Test("waker: it is reset before the supervisor reads")
  func waker() {
    expect(waker(stillsFirst: true), ["looked before it was stilled": waker(stillsFirst: false)])
  }

  // MARK: Threads that are replaced

  /// `Worker.enter`, `leave` and `revokeLease`: a thread makes two calls, and the supervisor revokes its lease in the first or the second.
  private func replacement(enter: ModelStep.Order, hasBarrier: Bool) -> Interleavings {
    let (owner, slot, words) = (0, 1, 2)
    let cell = 7
    var old: [ModelStep] = []
    for call in 1...2 {
      old += [
        // What the worker's thread writes between calls: ready words, timers.
        .set(0) { _ in call },
        .store(words, .relaxed) { _ in call },
        .store(slot, enter) { _ in cell },
        .set(1) { _ in call },
        .store(slot, .relaxed) { _ in 0 },
        .load(owner, into: 2),
        .jump("mine \(call)") { $0[2] == 1 },
        .exchange(owner, into: 2) { old, _ in old == -1 ? 1 : old },
        .jump("mine \(call)") { $0[2] == -1 },
        .jump("gone", if: { _ in true }),
        .label("mine \(call)"),
        .set(3) { _ in call },
        .check("two threads have the worker") { memory, _ in memory[owner] != 2 },
      ]
    }
    old.append(.label("gone"))
    var supervisor: [ModelStep] = [
      .load(slot, into: 0),
      .jump("kept") { $0[0] != cell },
      .store(owner, .sequential) { _ in -1 },
    ]
    if hasBarrier { supervisor.append(.barrierOfAll) }
    supervisor += [
      .load(slot, into: 0),
      .set(1) { $0[0] == cell ? 2 : 1 },
      .exchange(owner, into: 2) { old, r in old == -1 ? r[1] : old },
      .jump("kept") { $0[2] != -1 || $0[1] != 2 },
      // The new thread.
      .load(words, into: 3),
      .check("the new thread does not see what the old one wrote") { _, threads in
        threads[1][3] == threads[0][0]
      },
      .label("kept"),
    ]
    return Interleavings(memory: [1, 0, 0], [old, supervisor]) { _, _ in nil }
  }

  @Test("replacement: exactly one thread owns the worker, and sees all that its predecessor wrote")
  func replacement() {
    expect(
      replacement(enter: .releasing, hasBarrier: true),
      [
        "a call that is noted before what was written": replacement(enter: .relaxed, hasBarrier: true),
        "no barrier": replacement(enter: .releasing, hasBarrier: false),
      ])
  }

  // MARK: The trace

  /// `TraceRing.record` and `records`: four records through two slots, read once.
  private func trace(fences: Bool) -> Interleavings {
    let (written, slots) = (0, 1)
    var worker: [ModelStep] = []
    for number in 0..<4 {
      if fences { worker.append(.fence) }
      worker += [
        .store(slots + number % 2, .relaxed) { _ in number + 1 },
        .store(written, .releasing) { _ in number + 1 },
      ]
    }
    // The oldest record that is still there, read between two reads of the count.
    let reader: [ModelStep] = [
      .sleep(written) { $0 >= 1 },
      .load(written, into: 0),
      .set(1) { max(0, $0[0] - 2) },
      .jump("odd") { $0[1] % 2 == 1 },
      .load(slots, into: 2),
      .jump("look", if: { _ in true }),
      .label("odd"),
      .load(slots + 1, into: 2),
      .label("look"),
      .load(written, into: 3),
      .check("a record that was overwritten is taken for what it was") { _, threads in
        let r = threads[1]
        let isOverwritten = r[3] + 1 - 2 - r[1] > 0
        return isOverwritten || r[2] == r[1] + 1
      },
    ]
    return Interleavings(memory: [0, 0, 0], [worker, reader]) { _, _ in nil }
  }

  @Test("trace: a reader of a record's word sees the count of those before it")
  func trace() {
    expect(trace(fences: true), ["records without a fence between them": trace(fences: false)])
  }
}
