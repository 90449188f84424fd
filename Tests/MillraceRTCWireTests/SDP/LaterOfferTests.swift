import Testing

@testable import MillraceRTCWire

@Suite("The order of m-lines in later offers")
struct LaterOfferTests {
  /// What the order of an offer is refused with, after an offer of two media and its answer.
  private func problem(
    answering sections: [MediaSection] = [.audio(), .video()], _ change: (inout SessionDescription) -> Void
  ) throws -> NegotiationProblem? {
    let offer = try SDPTestParts.offer([.audio(), .video()]).description()
    let answer = try SDPTestParts.answer(offer, sections).description
    var later = offer
    change(&later)
    let changed = later
    return SDPTestParts.reason { () throws(NegotiationProblem) in
      try changed.checkOrder(after: answer, offer)
    }
  }

  @Test("the same m-lines, stopped ones, and others behind them are in order")
  func kept() throws {
    let same = try problem { _ in }
    let stopped = try problem { $0.media[1].port = 0 }
    let added = try problem { offer in
      var medium = offer.media[0]
      medium.mid = "more"
      offer.media.append(medium)
    }
    let renamed = try problem { $0.media[0].mid = "other" }
    #expect([same, stopped, added, renamed] == [nil, nil, nil, nil])
  }

  @Test("m-lines that are left out, or have become another's or of another kind, are not")
  func changed() throws {
    let leftOut = try problem { $0.media.removeLast() }
    let swapped = try problem { $0.media.swapAt(0, 1) }
    let repeated = try problem { $0.media[1].mid = "0" }
    let turned = try problem { offer in
      offer.media[1] = offer.media[0]
      offer.media[1].mid = "1"
    }
    #expect(leftOut == .mediaLeftOut(before: 2, now: 1) && swapped == .mediaMoved(medium: "0"))
    #expect(repeated == .mediaMoved(medium: "1") && turned == .mediaMoved(medium: "1"))
  }

  @Test("the place of a medium that was refused may be taken by another")
  func freed() throws {
    let change: (inout SessionDescription) -> Void = { offer in
      offer.media[1] = offer.media[0]
      offer.media[1].mid = "new"
    }
    let (free, taken) = (try problem(answering: [.audio()], change), try problem(change))
    #expect(free == nil && taken == .mediaMoved(medium: "1"))
  }

  @Test("a refusal says what is wrong, and the cure")
  func texts() {
    #expect(
      NegotiationProblem.mediaLeftOut(before: 2, now: 1).description
        == "the offer has 1 m-lines and the session 2; keep those that are stopped, with port 0")
    #expect(
      NegotiationProblem.mediaMoved(medium: "0").description
        == "the m-line of the medium 0 has become another one; keep the order, and add media at the end")
  }
}
