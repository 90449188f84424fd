import MillraceJSON
import MillraceRoomWire

/// An operation, and its payload on the wire; nil: there is none.
struct OperationSample: Sendable {
  var operation: RoomOperation
  var payload: String?

  init(_ operation: RoomOperation, _ payload: String?) {
    self.operation = operation
    self.payload = payload
  }

  var text: String {
    let head = #"{"id":7,"op":"\#(operation.name)""#
    return head + (payload.map { ",\"payload\":\($0)}" } ?? "}")
  }
}

/// Every operation, with all of its members first, then without those that may be missing.
let operations: [OperationSample] = [
  OperationSample(
    .login(RoomLogin(ann, name: "Ann", token: "t.s")),
    #"{"version":1,"user":"ann","name":"Ann","token":"t.s"}"#),
  OperationSample(.login(RoomLogin(ann)), #"{"version":1,"user":"ann"}"#),
  OperationSample(.logout, nil),
  OperationSample(
    .join(RoomJoin(room, role: .viewer, token: "t.s")), #"{"room":"r1","role":"viewer","token":"t.s"}"#),
  OperationSample(.join(RoomJoin(room)), #"{"room":"r1"}"#),
  OperationSample(.leave, nil),
  OperationSample(.role(.host), #"{"role":"host"}"#),
  OperationSample(
    .publish(RoomPublication(.video, isOn: true, source: .screen)),
    #"{"track":"video","on":true,"source":"screen"}"#),
  OperationSample(.publish(RoomPublication(.data, isOn: false)), #"{"track":"data","on":false}"#),
  OperationSample(
    .subscribe(RoomSubscription(.audio, isOn: true, peer: other)),
    #"{"track":"audio","on":true,"peer":"p2"}"#),
  OperationSample(
    .subscribe(RoomSubscription(.video, isOn: false)), #"{"track":"video","on":false,"all":true}"#),
  OperationSample(
    .sdp(RoomDescription(.offer, "v=0\r\n"), to: other), #"{"type":"offer","sdp":"v=0\r\n","to":"p2"}"#),
  OperationSample(.sdp(RoomDescription(.answer, "")), #"{"type":"answer","sdp":""}"#),
  OperationSample(
    .candidate(RoomCandidate("candidate:1", mid: "0"), to: other),
    #"{"candidate":"candidate:1","mid":"0","to":"p2"}"#),
  OperationSample(.candidate(RoomCandidate(nil)), nil),
  OperationSample(.kick(other, text: "out"), #"{"peer":"p2","text":"out"}"#),
  OperationSample(.kick(other), #"{"peer":"p2"}"#),
  OperationSample(.close(text: "late"), #"{"text":"late"}"#),
  OperationSample(.close(), nil),
  OperationSample(
    .call(RoomCallRequest(to: bob, media: [.video, .audio], text: "hi")),
    #"{"to":"bob","media":["audio","video"],"text":"hi"}"#),
  OperationSample(.call(RoomCallRequest(to: bob)), #"{"to":"bob"}"#),
  OperationSample(
    .answerCall(RoomCallAnswer(callID, isAccepted: false, text: "no")),
    #"{"call":"c1","accept":false,"text":"no"}"#),
  OperationSample(.answerCall(RoomCallAnswer(callID, isAccepted: true)), #"{"call":"c1","accept":true}"#),
  OperationSample(.hangUp(call: callID, reason: "bye"), #"{"call":"c1","reason":"bye"}"#),
  OperationSample(.hangUp(call: callID), #"{"call":"c1"}"#),
  OperationSample(
    .control(["command": "say", "text": "hi", "new": .number("1.50")], to: other),
    #"{"to":"p2","command":{"command":"say","text":"hi","new":1.50}}"#),
  OperationSample(
    .data(RoomData("chat", .text("hi \"x\"")), to: other),
    #"{"label":"chat","text":"hi \"x\"","to":"p2"}"#),
  OperationSample(.data(RoomData("", .bytes([0, 255, 7]))), #"{"label":"","base64":"AP8H"}"#),
  OperationSample(.data(RoomData("l", .bytes([]))), #"{"label":"l","base64":""}"#),
  OperationSample(.message("<b>ü</b>", to: other), #"{"text":"<b>ü</b>","to":"p2"}"#),
  OperationSample(.message(""), #"{"text":""}"#),
  OperationSample(
    .file(RoomFile("../<b>ü</b>.png", bytes: 70, type: "image/png")),
    #"{"name":"../<b>ü</b>.png","bytes":70,"type":"image/png"}"#),
  OperationSample(.file(RoomFile("a", bytes: 0)), #"{"name":"a","bytes":0}"#),
]

/// A push, and its text on the wire.
struct PushSample: Sendable {
  var push: RoomPush
  var text: String

  init(_ push: RoomPush, _ payload: String?) {
    self.push = push
    text = #"{"event":"\#(push.name)""# + (payload.map { ",\"payload\":\($0)}" } ?? "}")
  }
}

let member = RoomMember(
  other, user: bob, name: "Bob", role: .host, tracks: [.data, .audio, .video], isMuted: true)
let memberText =
  #""peer":"p2","user":"bob","name":"Bob","role":"host","tracks":["audio","video","data"],"muted":true"#

/// Every push, with all of its members first, then without those that may be missing.
let pushes: [PushSample] = [
  PushSample(
    .peer(RoomPeerChange(.left(.dropped), member)), #"{"change":"left",\#(memberText),"reason":"dropped"}"#),
  PushSample(.peer(RoomPeerChange(.joined, member)), #"{"change":"joined",\#(memberText)}"#),
  PushSample(.peer(RoomPeerChange(.role, member)), #"{"change":"role",\#(memberText)}"#),
  PushSample(
    .peer(RoomPeerChange(.tracks, RoomMember(other, user: bob, name: "", role: .viewer))),
    #"{"change":"tracks","peer":"p2","user":"bob","name":"","role":"viewer","tracks":[],"muted":false}"#),
  PushSample(.slot(RoomSlot("2", .video, peer: other)), #"{"mid":"2","track":"video","peer":"p2"}"#),
  PushSample(.slot(RoomSlot("2", .audio)), #"{"mid":"2","track":"audio"}"#),
  PushSample(
    .sdp(RoomDescription(.answer, "v=0"), from: other), #"{"type":"answer","sdp":"v=0","from":"p2"}"#),
  PushSample(
    .candidate(RoomCandidate("candidate:1", mid: "0"), from: other),
    #"{"candidate":"candidate:1","mid":"0","from":"p2"}"#),
  PushSample(.candidate(RoomCandidate(nil), from: other), #"{"from":"p2"}"#),
  PushSample(.keyFrame, nil),
  PushSample(
    .speaking([RoomLevel(other, -20), RoomLevel(peer, 0)]),
    #"{"peers":[{"peer":"p2","level":-20},{"peer":"p1","level":0}]}"#),
  PushSample(.speaking([]), #"{"peers":[]}"#),
  PushSample(
    .call(
      RoomCallChange(
        callID, .accepted, user: bob, name: "Bob", media: [.audio], text: "t", reason: "r", room: room)),
    #"{"call":"c1","change":"accepted","user":"bob","name":"Bob","media":["audio"],"text":"t","#
      + #""reason":"r","room":"r1"}"#
  ),
  PushSample(.call(RoomCallChange(callID, .busy)), #"{"call":"c1","change":"busy"}"#),
  PushSample(
    .control(["command": "interrupt"], from: other), #"{"from":"p2","command":{"command":"interrupt"}}"#),
  PushSample(
    .data(RoomData("chat", .text("hi")), from: other), #"{"from":"p2","label":"chat","text":"hi"}"#),
  PushSample(
    .data(RoomData("chat", .bytes([1])), from: other), #"{"from":"p2","label":"chat","base64":"AQ=="}"#),
  PushSample(.message("hi", from: other), #"{"from":"p2","text":"hi"}"#),
  PushSample(
    .file(RoomFile("a.png", bytes: 70, type: "image/png"), id: fileID, from: other),
    #"{"from":"p2","id":"f1","name":"a.png","bytes":70,"type":"image/png"}"#),
  PushSample(
    .file(RoomFile("a", bytes: 0), id: fileID, from: other),
    #"{"from":"p2","id":"f1","name":"a","bytes":0}"#),
  PushSample(.authWillExpire(inMilliseconds: 30_000), #"{"inMs":30000}"#),
  PushSample(.kicked(.removed, text: "out"), #"{"reason":"removed","text":"out"}"#),
  PushSample(.kicked(.expired), #"{"reason":"expired"}"#),
  PushSample(
    .error(RoomError(.tooManyRequests, "slow down", afterMilliseconds: 500)),
    #"{"name":"tooManyRequests","text":"slow down","afterMs":500}"#),
  PushSample(
    .error(RoomError(.badMessage, "no object")), #"{"name":"badMessage","text":"no object"}"#),
  PushSample(.unknown(name: "new", payload: ["n": 1]), #"{"n":1}"#),
  PushSample(.unknown(name: "", payload: .object([])), nil),
]
