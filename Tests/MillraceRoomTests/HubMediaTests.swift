import MillraceRoomWire
import Testing

@testable import MillraceRoom

@Suite("Room: sessions with the hub") struct HubMediaTests {
  private let ann = named("peer1")

  private func lobby(_ media: RoomMediaMode? = .forward) -> HubRig {
    let rig = HubRig(RoomHubSettings(media: media))
    rig.member(1, "ann")
    rig.clear()
    return rig
  }

  private func offer(_ rig: HubRig) -> Int { rig.request(1, .sdp(RoomDescription(.offer, "v=0"))) }

  private func error(_ rig: HubRig, _ request: Int) -> RoomError? {
    if case .failure(let error)? = rig.answer(1, request)?.result { error } else { nil }
  }

  @Test("an offer waits for the layer above, and gets its answer once")
  func answered() throws {
    let rig = lobby()
    let request = offer(rig)
    #expect(rig.actions() == [.offer(ann, sdp: "v=0", request: request)])
    #expect(rig.answer(1, request) == nil)
    #expect(rig.isDone(1, .message("meanwhile")))
    var wasTaken = false
    rig.change { wasTaken = $0.answerOffer(ann, request: request, .success("v=0 answer")) }
    #expect(wasTaken)
    #expect(
      try rig.answer(1, request)?.payload(RoomDescription.self) == RoomDescription(.answer, "v=0 answer"))
    rig.change { wasTaken = $0.answerOffer(ann, request: request, .success("again")) }
    #expect(!wasTaken)
    #expect(rig.hub.counts.offers == 0)
  }

  @Test("an offer that cannot be used gets the error", arguments: [RoomErrorName.badOffer, .noCommonCodec])
  func refused(name: RoomErrorName) {
    let rig = lobby()
    let request = offer(rig)
    rig.change { $0.answerOffer(ann, request: request, .failure(RoomError(name, "no"))) }
    #expect(error(rig, request) == RoomError(name, "no"))
  }

  @Test("an offer that nobody answers is given up after 10 s, and a late answer is of no use")
  func timeout() {
    let rig = lobby()
    let request = offer(rig)
    rig.wait(milliseconds: 9_999)
    #expect(rig.answer(1, request) == nil)
    rig.wait(milliseconds: 1)
    #expect(
      error(rig, request)
        == RoomError(
          .tooManyRequests, "the hub has not answered the offer within 10 s", afterMilliseconds: 1_000))
    #expect(
      rig.actions() == [.offer(ann, sdp: "v=0", request: request), .withdrawn(ann, request: request)],
      "its session is of no use")
    rig.change { hub in
      let wasTaken = hub.answerOffer(ann, request: request, .success("v=0"))
      #expect(!wasTaken)
    }
  }

  @Test("offers of a member that leaves are answered, those of a connection that is gone are not")
  func left() {
    let rig = lobby()
    let request = offer(rig)
    #expect(rig.isDone(1, .leave))
    #expect(error(rig, request)?.name == .notInRoom)
    rig.join(1, "lobby")
    let last = offer(rig)
    rig.disconnect(1)
    #expect(rig.answer(1, last) == nil)
    #expect(rig.hub.counts.offers == 0)
  }

  @Test(
    "who is removed or sees the room end learns so before its offers are answered", arguments: [true, false])
  func removed(isKicked: Bool) {
    let rig = lobby()
    rig.member(2, "bob")
    let request = offer(rig)
    rig.clear()
    #expect(rig.isDone(2, isKicked ? .kick(ann, text: nil) : .close(text: nil)))
    #expect(error(rig, request)?.name == .notInRoom)
    #expect(rig.order(1).suffix(2) == ["kicked", "answer"], "\(rig.order(1))")
  }

  @Test("a few offers may wait at once, and no more")
  func many() {
    let rig = lobby()
    let waiting = (0..<4).map { _ in offer(rig) }
    #expect(error(rig, offer(rig))?.name == .tooManyRequests)
    rig.change { $0.answerOffer(ann, request: waiting[2], .success("v=0")) }
    #expect(error(rig, offer(rig)) == nil)
    #expect(rig.hub.counts.offers == 4)
  }

  @Test("offers in a loop, each answered at once, reach the layer above as seldom as joins may")
  func loop() {
    let rig = lobby()
    func offers(_ count: Int) -> Int {
      for _ in 0..<count {
        let request = offer(rig)
        rig.change { $0.answerOffer(ann, request: request, .success("v=0")) }
      }
      return rig.actions().count
    }
    #expect(offers(100) == 20)
    #expect(error(rig, offer(rig))?.text == "too many offers from this address; try again after 50 ms")
    rig.wait(milliseconds: 50)
    #expect(offers(10) == 1)
  }

  @Test("a description that is no offer is nothing for the hub")
  func noOffer() {
    let rig = lobby()
    #expect(rig.refusal(1, .sdp(RoomDescription(.answer, "v=0"))) == .badOffer)
    #expect(rig.actions() == [])
  }

  @Test("candidates for the hub go to the layer above")
  func candidates() {
    let rig = lobby()
    #expect(rig.isDone(1, .candidate(RoomCandidate("candidate:1", mid: "0"))))
    #expect(rig.isDone(1, .candidate(RoomCandidate(nil))))
    #expect(
      rig.actions() == [
        .candidate(ann, RoomCandidate("candidate:1", mid: "0")), .candidate(ann, RoomCandidate(nil)),
      ])
  }

  @Test("a candidate that is longer than any is, is nothing for the hub; for a peer it is passed on")
  func longCandidate() {
    let rig = lobby()
    let bob = rig.member(2, "bob")
    rig.clear()
    let most = RoomCandidate(String(repeating: "c", count: 1_024))
    let more = RoomCandidate(String(repeating: "c", count: 1_025))
    #expect(rig.isDone(1, .candidate(most)))
    #expect(rig.refusal(1, .candidate(more)) == .badPayload)
    #expect(rig.actions() == [.candidate(ann, most)])
    #expect(rig.isDone(1, .candidate(more, to: bob)) && rig.seen(2).count == 1)
  }

  @Test(
    "a hub that carries messages only has no sessions and no subscriptions",
    arguments: [
      RoomOperation.sdp(RoomDescription(.offer, "v=0")), .candidate(RoomCandidate(nil)),
      .subscribe(RoomSubscription(.audio, isOn: true)),
    ])
  func noMedia(operation: RoomOperation) {
    let rig = lobby(nil)
    #expect(rig.refusal(1, operation) == .noMedia)
    #expect(rig.actions() == [])
    rig.connect(2)
    rig.logIn(2, "bob")
    let joined = rig.join(2, "lobby")
    #expect(joined != nil && joined?.media == nil)
    #expect(rig.isDone(2, .sdp(RoomDescription(.offer, "v=0"), to: ann)))
  }

  @Test("slots and key frames are told to the member that they concern")
  func pushes() {
    let rig = lobby()
    let bob = rig.member(2, "bob")
    rig.clear()
    rig.change { $0.assign(RoomSlot("1", .video, peer: bob), to: ann) }
    rig.change { $0.wantKeyFrame(of: ann) }
    rig.change { $0.wantKeyFrame(of: named("gone")) }
    #expect(rig.seen(1) == [.slot(RoomSlot("1", .video, peer: bob)), .keyFrame])
    #expect(rig.seen(2) == [])
  }
}
