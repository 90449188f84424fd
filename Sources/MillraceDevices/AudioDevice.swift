internal import CMillraceSys
internal import MillraceCore

/// A sound device that is open in one direction: a back end with a thread of its own, at the far end of a `CaptureLine` or a
/// `PlaybackLine`.
///
/// A device that goes away after it was open is the back end's to get back; it tells the line of both.
protocol AudioDevice: AnyObject, Sendable {
  /// Opens it. Control side; waits for the answer, three seconds at most.
  func start() throws(NodeProblem)

  /// Ends its thread. Waits for that; not for a worker.
  func stop()
}

/// What a back end needs to know besides the line.
struct DeviceTerms {
  /// The kind of device and which one.
  var name: DeviceName
  /// File of the device `file`.
  var path: String
  /// Nanoseconds between two looks of the device at its sound, where it can be asked for that.
  var interval: Nanoseconds
  /// How much faster than its nominal rate a device of our own is to run, in parts per million.
  var skew: Double
}

/// Which device: `kind` or `kind:name`.
struct DeviceName: Equatable {
  /// The back ends.
  enum Kind: String, CaseIterable {
    /// A sound server: PulseAudio, or PipeWire's PulseAudio side.
    case pulse
    /// A sound card, or whatever ALSA's configuration calls a PCM.
    case alsa
    /// A file at the pace of a device.
    case file
    /// Silence at the pace of the graph's clock.
    case null
  }

  var kind: Kind
  /// Empty: the back end's default.
  var name: String

  /// nil when the kind is none of ours.
  init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let kind = parts.first.flatMap({ Kind(rawValue: String($0)) }) else { return nil }
    self.kind = kind
    name = parts.count > 1 ? String(parts[1]) : ""
    if name.isEmpty && parts.count > 1 { return nil }
    if !name.isEmpty && (kind == .null || kind == .file) { return nil }
  }

  /// Objects to a device that is none; answers the others.
  static func resolved(_ resolution: inout Resolution) -> DeviceName? {
    let text = resolution.parameters.string("device")
    guard let name = DeviceName(text) else {
      resolution.refuse(
        "device", "there is no device \"\(text)\"",
        cure:
          "set one of pulse, pulse:NAME, alsa, alsa:NAME, file, null; \"millrace devices\" lists the names")
      return nil
    }
    if name.kind == .file && !resolution.parameters.has("path") {
      resolution.refuse("device", "the device \"file\" needs a file", cure: "set \"path\"")
    }
    return name
  }

  /// Objects to a device that has a clock of its own, where time is virtual.
  func refuseVirtual(_ isVirtual: Bool) throws(NodeProblem) {
    guard isVirtual && kind != .null else { return }
    throw NodeProblem(
      "the device \"\(kind.rawValue)\" has a clock of its own and cannot follow a virtual one",
      parameter: "device", cure: "run on the real clock, or set \"device\": \"null\"")
  }
}

/// Opens devices.
enum AudioDevices {
  /// Opens a device that records. Control side.
  static func open(_ terms: DeviceTerms, for line: CaptureLine, _ shape: CaptureShape) throws(NodeProblem)
    -> any AudioDevice
  {
    let device: any AudioDevice
    switch terms.name.kind {
    case .pulse: device = PulseStream(terms, .capture(line, shape))
    case .alsa: device = ALSADevice(terms, .capture(line, shape))
    case .file, .null: device = try FileCapture(terms, line, shape)
    }
    try device.start()
    return device
  }

  /// Opens a device that plays. Control side.
  static func open(_ terms: DeviceTerms, for line: PlaybackLine) throws(NodeProblem) -> any AudioDevice {
    let device: any AudioDevice
    switch terms.name.kind {
    case .pulse: device = PulseStream(terms, .playback(line))
    case .alsa: device = ALSADevice(terms, .playback(line))
    case .file, .null: device = try FilePlayback(terms, line)
    }
    try device.start()
    return device
  }
}

/// The priority of threads that carry sound.
enum SoundThread {
  /// Above a server's helpers, below its own sound threads (5).
  private static let priority: Int32 = 4

  /// Asks for it, for the calling thread. A refusal is no failure: the sound is then as good as the machine is idle.
  static func hurry() { _ = millrace_set_thread_realtime(priority) }
}

/// A node's hold on its device: when it goes, the device ends, on a thread that may wait for that.
final class DeviceHold {
  private let device: any AudioDevice

  init(_ device: any AudioDevice) { self.device = device }

  deinit { HangUps.end(device) }
}

/// What a recording device is to give.
struct CaptureShape: Equatable {
  var rate: Int
  var channels: Int
  var sample: SampleType
}
