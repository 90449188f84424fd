internal import MillraceCore

/// A capture device that is open, behind its line.
package struct OpenCapture {
  let line: CaptureLine
  /// Owned but never called: releasing it closes the device.
  let device: DeviceHandle
}

/// Opens the capture devices of one node, after those that are being closed where one can be open only once. Blocks; any thread but a worker.
struct CaptureOpener: Sendable {
  /// Starts a device for a line; tests script it.
  typealias Start =
    @Sendable (DeviceSettings, CaptureLine, CaptureFormat) throws(NodeProblem) -> any AudioDevice

  let shape: CaptureFormat
  /// Frames of a packet.
  let frames: Int
  /// Of the parameters: the file of the device `file`, how often a device moves audio, and its skew in parts per million.
  let path: String
  let interval: Nanoseconds
  let skew: Double
  let waker: Waker
  let start: Start

  /// Opens a device; nil for `null`, which has no line.
  func open(_ name: DeviceName) throws(NodeProblem) -> OpenCapture? {
    guard name.kind != .null else { return nil }
    DeviceShutdown.waitForClosing(name.kind)
    let line = CaptureLine(
      rate: shape.rate, frames: frames, frameBytes: shape.channels * shape.sample.byteCount, waker: waker)
    let settings = DeviceSettings(name: name, path: path, interval: interval, skew: skew)
    return OpenCapture(line: line, device: DeviceHandle(try start(settings, line, shape), name.kind))
  }
}
