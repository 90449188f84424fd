import Testing

@testable import MillraceCodecs

/// The steps of a timeline until it needs another packet, for this many available samples.
private func steps(_ timeline: inout FrameTimeline, samples: Int = 0) -> [FrameTimeline.Step] {
  var rest = samples
  var steps: [FrameTimeline.Step] = []
  while let step = timeline.next(available: rest) {
    if case .samples(_, let count) = step { rest -= count }
    steps.append(step)
  }
  #expect(rest == 0)
  return steps
}

/// Frames of 100 samples at 1000 Hz, with a look-ahead of 30.
private func frames() -> FrameTimeline { FrameTimeline(rate: 1000, frame: 100, lookahead: 30) }

@Suite("encoder timeline") struct FrameTimelineTests {
  @Test("samples fill frames, which have position and time minus the look-ahead")
  func filling() {
    var timeline = frames()
    timeline.admit(position: 500, count: 150, isLost: false, timestamp: 1_000_000_000)
    let slot = FrameTimeline.Slot(
      position: -30, duration: 100, trimEnd: 0, timestamp: 970_000_000, isLast: false)
    #expect(
      steps(&timeline, samples: 150) == [
        .samples(offset: 0, count: 100), .encode(slot), .samples(offset: 0, count: 50),
      ])
    #expect(timeline.completesFrame(available: 50))
    #expect(!timeline.completesFrame(available: 49))
  }

  @Test("a filter's run-in before position 0 stays before it, ahead of the look-ahead")
  func runIn() {
    var timeline = frames()
    timeline.admit(position: -40, count: 140, isLost: false, timestamp: 1_000_000_000)
    let slot = FrameTimeline.Slot(
      position: -70, duration: 100, trimEnd: 0, timestamp: 970_000_000, isLast: false)
    #expect(
      steps(&timeline, samples: 140) == [
        .samples(offset: 0, count: 100), .encode(slot), .samples(offset: 0, count: 40),
      ])
    let wasOpen = timeline.close()
    #expect(wasOpen)
    // 100 samples from position 0: with the look-ahead they end at 130, the second frame at 160.
    let last = FrameTimeline.Slot(
      position: 30, duration: 100, trimEnd: 30, timestamp: 1_070_000_000, isLast: true)
    #expect(steps(&timeline) == [.silence(offset: 40, count: 60), .encode(last)])
  }

  @Test("the end flushes the look-ahead and declares the padding of the last frame")
  func closing() {
    var timeline = frames()
    timeline.admit(position: 0, count: 150, isLost: false, timestamp: 0)
    _ = steps(&timeline, samples: 150)
    let wasOpen = timeline.close()
    #expect(wasOpen)
    let slot = FrameTimeline.Slot(
      position: 70, duration: 100, trimEnd: 20, timestamp: 70_000_000, isLast: true)
    #expect(steps(&timeline) == [.silence(offset: 50, count: 50), .encode(slot)])
    let isStillOpen = timeline.close()
    #expect(!isStillOpen)
  }

  @Test("a look-ahead that does not fit in the last frame takes another one")
  func closingLong() {
    var timeline = frames()
    timeline.admit(position: 0, count: 180, isLost: false, timestamp: 0)
    _ = steps(&timeline, samples: 180)
    let wasOpen = timeline.close()
    #expect(wasOpen)
    let found = steps(&timeline)
    #expect(found.count == 4)
    #expect(
      found.last
        == .encode(
          FrameTimeline.Slot(position: 170, duration: 100, trimEnd: 90, timestamp: 170_000_000, isLast: true))
    )
  }

  @Test("a long gap sends the frames that still carry audio and skips the others on the frame grid")
  func gap() {
    var timeline = frames()
    timeline.admit(position: 0, count: 80, isLost: false, timestamp: 0)
    _ = steps(&timeline, samples: 80)
    timeline.admit(position: 1050, count: 50, isLost: false, timestamp: 1_050_000_000)
    let found = steps(&timeline, samples: 50)
    #expect(found.first == .silence(offset: 80, count: 20))
    #expect(found.contains(.skip))
    let slots = found.compactMap { step in if case .encode(let slot) = step { slot.position } else { nil } }
    // The first two carry samples up to 80 + 30 of look-ahead; 200 to 1000 is skipped.
    #expect(slots == [-30, 70, 970])
    #expect(found.suffix(3).first == .silence(offset: 0, count: 50))
  }

  @Test("an input that ends in loss keeps its length with one last frame")
  func lostEnd() {
    var timeline = frames()
    timeline.admit(position: 0, count: 100, isLost: false, timestamp: 0)
    _ = steps(&timeline, samples: 100)
    timeline.admit(position: 100, count: 905, isLost: true, timestamp: 0)
    _ = steps(&timeline)
    let wasOpen = timeline.close()
    #expect(wasOpen)
    let found = steps(&timeline)
    guard case .encode(let slot)? = found.last else {
      Issue.record("no last frame")
      return
    }
    #expect(slot.isLast)
    #expect(slot.position + Int64(slot.duration - slot.trimEnd) == 1005)
  }
}

/// Everything at 1000 Hz: packets of 20, at most 50 samples extrapolated, at most 1000 filled.
private func concealment(recovers: Bool = false) -> ConcealmentTimeline {
  ConcealmentTimeline(linkRate: 1000, rate: 1000, concealLimit: 50, fillLimit: 1000, recovers: recovers)
}

private func packet(
  _ position: Int64, _ kind: ConcealmentTimeline.Arrival.Kind = .sound(recoverable: 0),
  timeline: ConcealmentTimeline
) -> ConcealmentTimeline.Arrival {
  var arrival = timeline.place(position: position, duration: 20, trimStart: 0, trimEnd: 0)
  arrival.kind = kind
  return arrival
}

private func steps(_ timeline: inout ConcealmentTimeline) -> [ConcealmentTimeline.Step] {
  var steps: [ConcealmentTimeline.Step] = []
  while let step = timeline.next() { steps.append(step) }
  return steps
}

@Suite("decoder timeline") struct ConcealmentTimelineTests {
  @Test("samples before position 0 are decoded and discarded")
  func preSkip() {
    var timeline = concealment()
    _ = timeline.admit(packet(-30, timeline: timeline))
    #expect(steps(&timeline) == [.decode(position: 0, from: 20, to: 20)])
    _ = timeline.admit(packet(-10, timeline: timeline))
    #expect(steps(&timeline) == [.decode(position: 0, from: 10, to: 20)])
  }

  @Test("a gap is extrapolated up to a limit, then silent; then the decoder is reset")
  func gap() {
    var timeline = concealment()
    _ = timeline.admit(packet(0, timeline: timeline))
    _ = steps(&timeline)
    let verdict = timeline.admit(packet(100, timeline: timeline))
    #expect(verdict.loss == .init(start: 20, count: 80, recoverable: 0, isFilled: true))
    #expect(
      steps(&timeline) == [
        .conceal(position: 20, count: 20, mayFade: true), .conceal(position: 40, count: 20, mayFade: true),
        .conceal(position: 60, count: 10, mayFade: true), .silence(position: 70, count: 20),
        .silence(position: 90, count: 10), .reset, .decode(position: 100, from: 0, to: 20),
      ])
  }

  @Test("a copy replaces only the last lost packet")
  func copy() {
    var timeline = concealment(recovers: true)
    _ = timeline.admit(packet(0, timeline: timeline))
    _ = steps(&timeline)
    let verdict = timeline.admit(packet(60, .sound(recoverable: 20), timeline: timeline))
    #expect(verdict.loss == .init(start: 20, count: 40, recoverable: 20, isFilled: true))
    #expect(
      steps(&timeline) == [
        .conceal(position: 20, count: 20, mayFade: true), .recover(position: 40, count: 20),
        .decode(position: 60, from: 0, to: 20),
      ])
  }

  @Test("a copy that fits the gap fills it alone; one longer than the gap is not used")
  func copyAndGap() {
    for (end, step) in [
      (Int64(40), ConcealmentTimeline.Step.recover(position: 20, count: 20)),
      (39, .conceal(position: 20, count: 19, mayFade: true)),
    ] {
      var timeline = concealment(recovers: true)
      _ = timeline.admit(packet(0, timeline: timeline))
      _ = steps(&timeline)
      let verdict = timeline.admit(packet(end, .sound(recoverable: 20), timeline: timeline))
      #expect(verdict.loss?.recoverable == (end == 40 ? 20 : 0))
      #expect(steps(&timeline) == [step, .decode(position: end, from: 0, to: 20)])
    }
  }

  @Test("the copy after untransmitted silence is not used: nothing was lost")
  func copyAfterSilence() {
    var timeline = concealment(recovers: true)
    _ = timeline.admit(packet(0, timeline: timeline))
    _ = steps(&timeline)
    var next = packet(40, .sound(recoverable: 20), timeline: timeline)
    next.followsSilence = true
    _ = timeline.admit(next)
    #expect(
      steps(&timeline) == [
        .conceal(position: 20, count: 20, mayFade: false), .decode(position: 40, from: 0, to: 20),
      ])
  }

  @Test("a stream that goes back ends the pending loss, and starts at its own position")
  func goesBack() {
    var timeline = concealment(recovers: true)
    _ = timeline.admit(packet(200, timeline: timeline))
    _ = steps(&timeline)
    _ = timeline.admit(packet(220, .lost, timeline: timeline))
    #expect(steps(&timeline) == [])
    let verdict = timeline.admit(packet(100, timeline: timeline))
    #expect(verdict.resets && verdict.jumps)
    #expect(verdict.loss == .init(start: 220, count: 20, recoverable: 0, isFilled: true))
    #expect(steps(&timeline) == [.decode(position: 100, from: 0, to: 20)])
  }

  @Test("a stream that restarts at its current position resets the decoder without a jump")
  func restartsInPlace() {
    var timeline = concealment()
    _ = timeline.admit(packet(0, timeline: timeline))
    _ = steps(&timeline)
    var next = packet(20, timeline: timeline)
    next.isRestart = true
    let verdict = timeline.admit(next)
    #expect(verdict.resets && !verdict.jumps && verdict.loss == nil)
    #expect(steps(&timeline) == [.decode(position: 20, from: 0, to: 20)])
  }

  @Test("untransmitted silence is filled without limit and is not a loss")
  func unsent() {
    var timeline = concealment()
    _ = timeline.admit(packet(0, timeline: timeline))
    _ = steps(&timeline)
    var next = packet(120, timeline: timeline)
    next.followsSilence = true
    let verdict = timeline.admit(next)
    #expect(verdict == .init())
    let found = steps(&timeline)
    #expect(found.count == 6)
    #expect(found.first == .conceal(position: 20, count: 20, mayFade: false))
  }

  @Test("a jump beyond `fill` advances at once")
  func leap() {
    var timeline = concealment()
    _ = timeline.admit(packet(0, timeline: timeline))
    _ = steps(&timeline)
    let verdict = timeline.admit(packet(1021, timeline: timeline))
    #expect(verdict.resets && verdict.jumps)
    #expect(verdict.loss == .init(start: 20, count: 1001, recoverable: 0, isFilled: false))
    #expect(steps(&timeline) == [.decode(position: 1021, from: 0, to: 20)])
  }

  @Test("positions at another rate leave neither gap nor overlap")
  func rescaling() {
    var timeline = ConcealmentTimeline(
      linkRate: 48_000, rate: 8000, concealLimit: 0, fillLimit: 0, recovers: false)
    var expected: Int64 = 0
    for index in 0..<50 {
      let start = Int64(index) * 961 + 7
      var arrival = timeline.place(position: start, duration: 961, trimStart: 0, trimEnd: 0)
      arrival.kind = .sound(recoverable: 0)
      if index > 0 { #expect(arrival.keptStart == expected) }
      expected = arrival.keptEnd
      _ = timeline.admit(arrival)
    }
    for (position, expected) in [(-1, 0), (-6, -1), (-7, -1), (0, 0), (1, 1), (6, 1), (7, 2)]
      as [(Int64, Int64)]
    {
      #expect(rescale(position, from: 48_000, to: 8000) == expected)
    }
    #expect(rescale(1 << 48, from: 8000, to: 48_000) == 6 << 48)
  }
}

@Suite("the copy of the previous packet in an Opus packet") struct RecoverableTests {
  // Configuration 1: SILK layer, narrowband, frames of 20 ms (RFC 6716 table 2). In the first byte of the SILK layer, the bit after one voice
  // flag marks a copy (section 4.2.3).
  private static let speech: UInt8 = 1 << 3
  private static let copy: UInt8 = 0b0100_0000

  @Test(
    "is found by its flag in the first frame, wherever that is, and only in a SILK layer",
    arguments: [
      ([speech, copy], 160), ([speech, ~copy], 0), ([speech], 0), ([], 0),
      // Two frames, the first of one byte.
      ([speech | 2, 1, copy, 0], 160), ([speech | 2, 1, 0, copy], 0),
      // Two frames, the first empty: what follows belongs to the second.
      ([speech | 2, 0, copy], 0),
      // No SILK layer at all.
      ([0x80 | speech, copy], 0),
    ])
  func flag(bytes: [UInt8], samples: Int) {
    #expect(LibopusDecoder.recoverable(from: bytes.span, rate: 8000) == samples)
  }
}
