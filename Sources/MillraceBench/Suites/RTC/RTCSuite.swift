import Millrace

/// Calls over WebRTC between two graphs of this process: `rtc.whip` publishes to an `rtc.whip` that listens.
///
/// - From the request to the first decoded sound, on this machine's address; beside aiortc, a pair of peers in one program of Python.
/// - Thirty calls over a link that loses 5 % in bursts, with a round trip of 60 ms.
/// - From mouth to ear, beyond the frame and the jitter buffer's target.
/// - Silence that was not filled at 5 % loss, and how soon the sound is whole after ten seconds of 20 %.
/// - Fifty sessions for `MILLRACE_SECONDS` (60): processor, memory, gaps; beside the same encodes and decodes by libopus alone.
enum RTCSuite {
  static let name = "rtc"

  static func run(_ catalogue: Catalogue) throws -> [Figure] {
    let stage = try CallStage(catalogue)
    defer { CallEars.clear() }
    return try CallStart.run(stage) + CallStart.lossy(stage) + CallSound.run(stage) + CallCrowd.run(stage)
  }
}
