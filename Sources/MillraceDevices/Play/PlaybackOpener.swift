internal import MillraceCore

/// A playback device that is open, behind its line.
package struct OpenPlayback {
  let line: PlaybackLine
  /// Owned but never called: releasing it closes the device.
  let device: DeviceHandle
}

/// Opens the playback devices of one node, after those that are being closed where one can be open only once. Blocks; any thread but a worker.
struct PlaybackOpener: Sendable {
  /// Starts a device for a line; tests script it.
  typealias Start = @Sendable (DeviceSettings, PlaybackLine) throws(NodeProblem) -> any AudioDevice

  let rate: Int
  let channels: Int
  /// Most frames of a block.
  let longest: Int
  /// How far ahead of the device's clock audio is queued, in frames.
  let ahead: Int
  /// Of the parameters: the file of the device `file`, how often a device moves audio, and its skew in parts per million.
  let path: String
  let interval: Nanoseconds
  let skew: Double
  let waker: Waker
  let start: Start

  /// Opens a device; nil for `null`, which has no line.
  func open(_ name: DeviceName) throws(NodeProblem) -> OpenPlayback? {
    guard name.kind != .null else { return nil }
    DeviceShutdown.waitForClosing(name.kind)
    var wakePipe: WakePipe?
    if name.kind == .pulse {
      wakePipe = WakePipe()
      if wakePipe == nil {
        throw NodeProblem(
          "too many open files in this process", cure: "raise the limit of open files (ulimit -n)")
      }
    }
    let line = PlaybackLine(
      rate: rate, channels: channels, frames: longest, ahead: ahead, wakePipe: wakePipe, waker: waker)
    let settings = DeviceSettings(name: name, path: path, interval: interval, skew: skew)
    return OpenPlayback(line: line, device: DeviceHandle(try start(settings, line), name.kind))
  }
}
