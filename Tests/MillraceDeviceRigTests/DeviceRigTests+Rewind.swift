import Foundation
import Millrace
import MillraceAudio
import Testing

/// Interruptions on a real sound server.
extension DeviceRigTests {
  @Test(
    "queued audio of a cancelled reply is rewound: the server plays what is counted as heard, and no more"
  )
  func rewind() throws {
    let server = try PulseServer()
    let sound = server.folder + "/reply.wav"
    // A minute at half scale, so that every played sample is recognized.
    let constant = [Float](repeating: 0.5, count: 60 * PulseServer.rate)
    var writer = try WAVWriter(
      path: sound, format: WAVFormat(sampleRate: PulseServer.rate, channels: 1, encoding: .f32))
    try writer.write(constant.span)
    try writer.finish()
    let graph = server.folder + "/reply.json"
    // Queued so far ahead that rewinding cannot be mistaken for lateness.
    try """
    { "millrace": 1, "name": "reply", "clock": "realtime", "parameters": { "log": {} },
      "nodes": {
        "bot": { "type": "audio.read", "path": "\(sound)", "reply": true },
        "speaker": { "type": "audio.play", "device": "pulse", "latency": 300, "drift": false },
        "log": { "type": "event.log", "path": "${log}" } },
      "links": [ "bot -> speaker", "speaker.events -> log.in1" ] }
    """.write(toFile: graph, atomically: true, encoding: .utf8)
    let running = try Running(path: graph, in: server.folder)
    let played = try server.record(after: 0.5) {
      #expect(running.wait(for: "replyAudible", of: "speaker", seconds: 60))
      // Let it play for a while.
      usleep(1_500_000)
      running.run.interrupt()
      #expect(running.wait(for: "interrupted", of: "speaker", seconds: 60))
    }.loudspeaker
    let cut = try #require(running.events.last { $0.contains("\"interrupted\"") })
    #expect(try running.end().failure == nil)
    let counted = try #require(
      Int(cut.split(separator: "\"samples\":").last?.prefix(while: \.isNumber) ?? ""))
    let heard = played.count { $0 > 0.001 }
    print("\(counted) counted, \(heard) played")
    // On a busy machine late audio becomes a gap; 100 ms of that is not a failure, but 200 ms too much is.
    #expect(abs(counted - heard) < PulseServer.rate / 10, "\(counted) counted, \(heard) played")
    #expect(counted > PulseServer.rate)
  }
}
