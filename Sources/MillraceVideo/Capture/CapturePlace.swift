internal import Glibc
internal import MillraceCore

/// The kind of device, the region, the size and the rate that a node captures, from whichever device.
struct CapturePlace: Sendable {
  enum Kind: String, Sendable {
    case screen, camera, test
  }

  let kind: Kind
  private let width: Int
  private let height: Int
  private let rate: Int
  private let left: Int
  private let top: Int
  private let hasPointer: Bool

  init(_ values: ParameterValues) {
    kind = Kind(rawValue: values.string("source")) ?? .screen
    (width, height, rate) = (values.integer("width"), values.integer("height"), values.integer("rate"))
    (left, top) = (values.integer("left"), values.integer("top"))
    hasPointer = values.bool("pointer")
  }

  /// The device that these parameters name; empty if there is none.
  func device(_ values: ParameterValues) -> String {
    kind != .test && values.has("device") ? values.string("device") : usualDevice
  }

  /// The device if none is named.
  private var usualDevice: String {
    switch kind {
    case .screen: unsafe getenv("DISPLAY").map { unsafe String(cString: $0) } ?? ""
    case .camera: "/dev/video0"
    case .test: ""
    }
  }

  /// The input for the libraries to open. Any thread.
  func input(from device: String) throws(NodeProblem) -> Demuxer.Source {
    switch kind {
    case .screen: try screen(device)
    case .camera: try camera(device)
    case .test: test
    }
  }

  private func screen(_ display: String) throws(NodeProblem) -> Demuxer.Source {
    guard !display.isEmpty else {
      throw NodeProblem(
        "no display: neither `device` nor DISPLAY is set", parameter: "device",
        cure: "run inside an X session, or set a display such as \":0\"")
    }
    return Demuxer.Source(
      device: "x11grab", url: "\(display)+\(left),\(top)",
      options: [
        "video_size": "\(width)x\(height)", "framerate": "\(rate)", "draw_mouse": hasPointer ? "1" : "0",
      ], name: "the display \"\(display)\"",
      cure: "check that it exists, that you have access, and that the region lies on the screen")
  }

  private func camera(_ device: String) throws(NodeProblem) -> Demuxer.Source {
    guard unsafe access(device, F_OK) == 0 else {
      throw NodeProblem(
        "no camera \"\(device)\"", parameter: "device",
        cure: "connect a camera, or use another device: ls /dev/video*")
    }
    return Demuxer.Source(
      device: "v4l2", url: device,
      options: ["video_size": "\(width)x\(height)", "framerate": "\(rate)", "timestamps": "abs"],
      name: "the camera \"\(device)\"",
      cure: "use another device (ls /dev/video*), or a supported size and rate: v4l2-ctl --list-formats-ext")
  }

  private var test: Demuxer.Source {
    // The filter does not support a single row or column; the picture is scaled down from a larger one.
    let size = "\(max(2, width))x\(max(2, height))"
    return Demuxer.Source(
      device: "lavfi", url: "testsrc2=size=\(size):rate=\(rate)", name: "the test picture")
  }
}
