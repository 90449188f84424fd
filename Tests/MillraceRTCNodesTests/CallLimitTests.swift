import MillraceCore
import MillraceDialog
import MillraceRTC
import MillraceRTCSignal
import MillraceRTCWire
import Testing

@testable import MillraceRTCNodes

@Suite("What a call reports only so often") struct CallLimitTests {
  private func error(_ number: Int) -> DialogError {
    RTCError.sctpFailed.error("fault \(number)", reaction: .continue)
  }

  private func report(_ number: Int, count: Int) -> RepeatedErrors.Report {
    RepeatedErrors.Report(error: error(number), count: count)
  }

  @Test("the first error of a kind is reported at once, and those of a second after it together")
  func repeated() {
    var errors = RepeatedErrors()
    let first = errors.note(error(0), .refusedChannel, at: 0)
    #expect(first == report(0, count: 1) && errors.deadline == nil)
    for number in 1...99 {
      let next = errors.note(error(number), .refusedChannel, at: .milliseconds(Int64(number)))
      #expect(next == nil)
    }
    // Another kind has a second of its own.
    let other = errors.note(error(5), .receivedTooLarge, at: .milliseconds(500))
    #expect(other == report(5, count: 1) && errors.deadline == .milliseconds(1_000))
    let early = errors.takeDue(at: .milliseconds(999))
    let due = errors.takeDue(at: .milliseconds(1_000))
    #expect(early.isEmpty && due == [report(99, count: 99)] && errors.deadline == nil)
    let rest = errors.takeDue(at: .milliseconds(9_000), isLast: true)
    #expect(rest.isEmpty)
  }

  @Test("at the end the rest is reported")
  func last() {
    var errors = RepeatedErrors()
    for number in 0..<3 { _ = errors.note(error(number), .refusedChannel, at: 0) }
    let rest = errors.takeDue(at: 1, isLast: true)
    #expect(rest == [report(2, count: 2)])
  }

  @Test("a medium is missed once others have come, for as long as the patience, and told once")
  func missing() {
    var media = MissingMedia(
      SignalMedia(audio: .receiveOnly, video: .receiveOnly), patience: 3_000, at: 1_000)
    #expect(media.deadline == nil)
    let nothing = media.takeDue(at: 90_000)
    media.received(.audio, at: 2_000)
    #expect(nothing.isEmpty && media.deadline == 5_000)
    let early = media.takeDue(at: 4_999)
    let due = media.takeDue(at: 5_000)
    let again = media.takeDue(at: 90_000)
    #expect(early.isEmpty && due == [.video] && again.isEmpty && media.deadline == nil)
  }

  @Test("what may be an echo is expected once this side has sent it, and what has come is not missed")
  func echo() {
    var media = MissingMedia(
      SignalMedia(audio: .sendReceive, video: .sendReceive), patience: 3_000, at: 0)
    media.sent(.audio, at: 100)
    media.received(.audio, at: 200)
    #expect(media.deadline == nil)
    media.sent(.video, at: 9_000)
    #expect(media.deadline == 12_000)
    media.received(.video, at: 11_000)
    let due = media.takeDue(at: 90_000)
    #expect(media.deadline == nil && due.isEmpty)
  }

  @Test("without patience nothing is missed, and neither is what is not received")
  func patient() {
    for (media, patience) in [
      (SignalMedia(audio: .receiveOnly, video: .receiveOnly), 0),
      (SignalMedia(audio: .receiveOnly, video: .sendOnly), 3_000),
    ] as [(SignalMedia, Nanoseconds)] {
      var missing = MissingMedia(media, patience: patience, at: 0)
      missing.sent(.video, at: 0)
      missing.received(.audio, at: 0)
      let due = missing.takeDue(at: 90_000)
      #expect(due.isEmpty)
    }
  }

  @Test("the network is judged while something comes, and for a while after a report of the peer")
  func judged() {
    var (quality, counts) = (CallQuality(), RTCStatistics())
    func isJudged(_ new: RTCStatistics, at milliseconds: Int64) -> Bool {
      let last = counts
      counts = new
      return quality.note(new, since: last, peer: nil, at: .milliseconds(milliseconds)) != nil
    }
    let nothing = isJudged(counts, at: 0)
    var received = counts
    received.video.receivedPackets = 5
    let packets = isJudged(received, at: 1_000)
    let silence = isJudged(received, at: 2_000)
    var reported = received
    reported.sound.remoteLoss = 0.1
    let report = isJudged(reported, at: 3_000)
    let later = isJudged(reported, at: 10_500)
    let old = isJudged(reported, at: 10_501)
    #expect([nothing, packets, silence, report, later, old] == [false, true, false, true, true, false])
  }

  @Test("the description says how large a message may be")
  func largestMessage() {
    var settings = RTCCallSettings()
    settings.session.sections = [.data()]
    settings.largestMessage = 4_096
    let sections = settings.sections(for: SignalMedia(hasData: true), soundCodec: 0)
    #expect(sections.map(\.maxMessageSize) == [4_096])
  }
}
