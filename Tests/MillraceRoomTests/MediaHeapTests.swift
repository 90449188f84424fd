import CMallocCount
import MillraceCore
import MillraceRTCWire
import MillraceRoomWire
import Testing

@testable import MillraceRTC
@testable import MillraceRoom

@Suite("Room: heap requests of media that are forwarded", .timeLimit(.minutes(20))) struct MediaHeapTests {
  private static let packetCount = 500
  private static let pictureCount = 100

  private static func sound(_ ssrc: UInt32, _ number: Int, at arrival: Nanoseconds) -> ReceivedSound {
    ReceivedSound(
      ssrc: ssrc, codec: .opus, sequence: Int64(number), timestamp: Int64(number) * 960, arrival: arrival,
      capture: 0, payloadType: 111, marker: false, restarts: false,
      level: RTPAudioLevel(attenuation: 30, hasSpeech: true), medium: 0)
  }

  private static func picture(_ number: Int, at arrival: Nanoseconds) -> ReceivedPicture {
    ReceivedPicture(
      ssrc: 7, codec: .vp8, timestamp: Int64(number) * 3_600, capture: 0, arrival: arrival, isKey: true,
      isDamaged: false, followsLoss: false, medium: 1)
  }

  /// Ann sends sound and pictures, which Bob and Cay receive.
  private func begin() async throws -> (rig: MediaRig, media: DirectMedia) {
    let media = try DirectMedia()
    let rig = try MediaRig(media)
    for name in ["ann", "bob", "cay"] { rig.join(name) }
    rig.publish("ann", .audio)
    rig.publish("ann", .video)
    for name in ["bob", "cay"] {
      rig.subscribe(name, .audio)
      rig.subscribe(name, .video)
    }
    let ann = rig.connect("ann", [.audio(.sendOnly), .video(.sendOnly, codecs: [.vp8])])
    let others = ["bob", "cay"].map {
      rig.connect($0, [.audio(.receiveOnly), .video(.receiveOnly, codecs: [.vp8])])
    }
    try await rig.until { rig.isConnected(ann, others[0], others[1]) }
    try await rig.until {
      ["bob", "cay"].allSatisfy { rig.slots($0, .audio).count == 1 && rig.slots($0, .video).count == 1 }
    }
    for name in ["ann", "bob", "cay"] { try await media.connected(name) }
    return (rig, media)
  }

  /// The sessions that receive.
  private func sessions(_ media: DirectMedia) async -> [RTCSession] {
    var sessions: [RTCSession] = []
    for name in ["bob", "cay"] {
      if let session = await media.with(name, { SessionBox($0?.session) }).session {
        sessions.append(session)
      }
    }
    return sessions
  }

  /// What the room adds to what the sessions of the receivers need by themselves, of which sockets and ICE may need something.
  @Test(
    "what is sent on makes no more requests than sending it to each receiver does",
    .enabled(if: millrace_malloc_counting_available() == 1))
  func sounds() async throws {
    let (rig, media) = try await begin()
    defer { rig.stop() }
    let receivers = SessionsBox(await sessions(media))
    #expect(receivers.sessions.count == 2)
    let payload = [UInt8](repeating: 7, count: 80)
    let clock = Clock(.realtime)
    let alone = await media.with("ann") { _ in
      let start = clock.now
      var requests: UInt64 = 0
      for number in 0..<Self.packetCount {
        let sound = Self.sound(1, number, at: start + Nanoseconds(number) * .milliseconds(20))
        let before = millrace_malloc_thread_requests()
        for index in receivers.sessions.indices {
          receivers.sessions[index].forward(sound, payload.span, on: 0)
        }
        // The first packets warm up.
        if number >= 50 { requests += millrace_malloc_thread_requests() - before }
      }
      return requests
    }
    let forwarded = await media.with("ann") { member in
      let start = clock.now
      var requests: UInt64 = 0
      for number in 0..<Self.packetCount {
        let sound = Self.sound(2, number, at: start + Nanoseconds(number) * .milliseconds(20))
        let before = millrace_malloc_thread_requests()
        member?.sessionReceived(sound, payload.span)
        if number >= 50 { requests += millrace_malloc_thread_requests() - before }
      }
      return requests
    }
    #expect(media.counters.counts.sounds == 2 * Self.packetCount)
    #expect(forwarded < alone + UInt64(Self.packetCount / 10))
  }

  @Test(
    "whole pictures that are sent on make no more requests than sending them to each receiver does",
    .enabled(if: millrace_malloc_counting_available() == 1))
  func pictures() async throws {
    let (rig, media) = try await begin()
    defer { rig.stop() }
    let receivers = SessionsBox(await sessions(media))
    let bytes = MediaPicture.vp8(isKey: true, number: 1)
    let clock = Clock(.realtime)
    var alone: UInt64 = 0
    var forwarded: UInt64 = 0
    for number in 0..<2 * Self.pictureCount {
      let isAlone = number < Self.pictureCount
      let requests = await media.with("ann") { member in
        let picture = Self.picture(number, at: clock.now)
        let before = millrace_malloc_thread_requests()
        if isAlone {
          for index in receivers.sessions.indices {
            receivers.sessions[index].send(
              picture: bytes.span, isKey: true, captured: picture.arrival, on: 1)
          }
        } else {
          member?.sessionReceived(picture, bytes.span)
        }
        return millrace_malloc_thread_requests() - before
      }
      if number % Self.pictureCount >= 20 {
        if isAlone { alone += requests } else { forwarded += requests }
      }
      // As their sender spaces them.
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(media.counters.counts.pictures >= Self.pictureCount)
    #expect(forwarded < alone + UInt64(Self.pictureCount / 5))
  }
}

/// Sessions are used on their loop only.
private struct SessionBox: @unchecked Sendable {
  let session: RTCSession?

  init(_ session: RTCSession?) { self.session = session }
}

private struct SessionsBox: @unchecked Sendable {
  let sessions: [RTCSession]

  init(_ sessions: [RTCSession]) { self.sessions = sessions }
}
