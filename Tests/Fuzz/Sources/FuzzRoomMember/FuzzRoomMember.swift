import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRTCWire
import MillraceRoomWire

@testable import MillraceRTCSignal

/// Feeds what a hub says to the member of a room, which logs in, joins and has its sessions meanwhile. The first byte says what kind of
/// member it is, and whether it is in the room already; then each line is something that happens, by its first byte: `{` is a message of
/// the hub.
///
/// It must not crash. What it sends are requests with rising ids, and what it reports are events that survive a round trip
/// (`MemberWatch`). While it is in the room it takes commands and pushes, whatever came before; and it ends when it is told to.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRoomMember(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first, let settings = makeSettings(first) else { return 0 }
  var member = MemberWatch(
    settings, isOfHub: first & 1 == 0, choice: first & 2 == 0 ? .first : .user("bob"))
  if first & 4 == 0 { member.join() }
  for line in bytes.dropFirst().split(separator: 0x0A) { member.take(line) }
  member.finish()
  return 0
}

/// Who takes part.
private func makeSettings(_ first: UInt8) -> RoomClientSettings? {
  guard let url = try? WebAddress("ws://127.0.0.1:8080/room") else { return nil }
  let media =
    switch first >> 3 & 3 {
    case 0: SignalMedia(audio: .sendReceive)
    case 1: SignalMedia(audio: .sendReceive, video: .sendReceive, hasData: true)
    case 2: SignalMedia(audio: .receiveOnly, video: .receiveOnly)
    default: SignalMedia()
    }
  var settings = RoomClientSettings(url: url, user: "ann", room: "r1", media: media)
  settings.token = "token-of-ann"
  settings.role = first & 32 == 0 ? nil : .viewer
  settings.publish = [.audio, .video, .data]
  settings.subscribe = [.audio, .video, .data]
  return settings
}
