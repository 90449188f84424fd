internal import CMillraceSys
internal import MillraceCore

/// An audio device open in one direction: a back end with its own thread, behind a `CaptureLine` or a `PlaybackLine`.
///
/// A device that disappears after it was opened is recovered by its back end, which reports the loss and the recovery to the line.
protocol AudioDevice: AnyObject, Sendable {
  /// Opens the device. Control side; blocks until it answers, for at most three seconds.
  func start() throws(NodeProblem)

  /// Ends the device's thread and waits for it. Never call it on a worker.
  func stop()

  /// The file that it claims until it is stopped; nil: none.
  var file: String? { get }
}

extension AudioDevice {
  var file: String? { nil }
}

/// What a back end needs besides the line.
struct DeviceSettings {
  /// The kind of device and which one.
  var name: DeviceName
  /// The file of the device `file`.
  var path: String
  /// How often the device moves audio, in nanoseconds, where the back end lets us choose.
  var interval: Nanoseconds
  /// How much faster than its nominal rate the device `file` or `null` runs, in parts per million.
  var skew: Double
}

/// The name of a device: `kind` or `kind:name`.
struct DeviceName: Equatable {
  /// The back ends.
  enum Kind: String, CaseIterable {
    /// A sound server: PulseAudio, or PipeWire through its PulseAudio interface.
    case pulse
    /// A PCM from the ALSA configuration, such as a sound card.
    case alsa
    /// A WAV file, read or written in real time.
    case file
    /// Silence, timed by the graph's clock.
    case null

    /// True where a device may be open only once. A sound server mixes, and a file is claimed by its path.
    var isExclusive: Bool { self == .alsa }
  }

  var kind: Kind
  /// Empty: the back end's default.
  var name: String

  /// nil when the kind is unknown, or does not take a name.
  init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let kind = parts.first.flatMap({ Kind(rawValue: String($0)) }) else { return nil }
    self.kind = kind
    name = parts.count > 1 ? String(parts[1]) : ""
    if name.isEmpty && parts.count > 1 { return nil }
    if !name.isEmpty && (kind == .null || kind == .file) { return nil }
  }

  /// Reads the parameter `device`; refuses an unknown device and a `file` without a path.
  static func resolved(_ resolution: inout Resolution) -> DeviceName? {
    let text = resolution.parameters.string("device")
    guard let name = DeviceName(text) else {
      resolution.refuse(
        "device", "unknown device \"\(text)\"",
        cure:
          "use pulse, pulse:NAME, alsa, alsa:NAME, file or null; \"millrace devices\" lists the names")
      return nil
    }
    if name.kind == .file && !resolution.parameters.has("path") {
      resolution.refuse("device", "the device \"file\" needs a path", cure: "set \"path\"")
    }
    return name
  }

  /// Throws if the device has its own clock and the graph runs on a virtual one.
  func checkClock(_ isVirtual: Bool) throws(NodeProblem) {
    guard isVirtual && kind != .null else { return }
    throw NodeProblem(
      "the device \"\(kind.rawValue)\" has its own clock and cannot follow a virtual clock",
      parameter: "device", cure: "run on the real-time clock, or set \"device\": \"null\"")
  }

  /// Reads the parameter `device` of a node that begins: `initial`, with which its graph was started, or one that was set since then.
  static func first(_ text: String, initial: String, path: String, isVirtual: Bool) throws(NodeProblem)
    -> DeviceName
  {
    guard let own = DeviceName(initial) else {
      throw NodeProblem("unknown device \"\(initial)\"", parameter: "device")
    }
    guard text == initial else {
      guard own.kind != .null else { throw graphClock }
      return try live(text, path: path)
    }
    try own.checkClock(isVirtual)
    return own
  }

  /// Reads the parameter `device` that was set while the graph runs. Only a device with its own clock can take the place of another.
  static func live(_ text: String, path: String) throws(NodeProblem) -> DeviceName {
    guard let name = DeviceName(text) else {
      throw NodeProblem(
        "unknown device \"\(text)\"", parameter: "device",
        cure: "use pulse, pulse:NAME, alsa, alsa:NAME or file; \"millrace devices\" lists the names")
    }
    guard name.kind != .null else { throw graphClock }
    guard name.kind != .file || !path.isEmpty else {
      throw NodeProblem(
        "the device \"file\" needs a path", parameter: "device", cure: "set \"path\" before the start")
    }
    return name
  }

  /// The problem of a change from or to the device `null`.
  static let graphClock = NodeProblem(
    "the device \"null\" runs on the graph's clock: it cannot be replaced, or replace another, while the graph runs",
    parameter: "device", cure: "start the graph with the other device")
}

/// Opens devices.
enum AudioDevices {
  /// Opens a capture device. Control side.
  static func open(_ settings: DeviceSettings, for line: CaptureLine, _ shape: CaptureFormat)
    throws(NodeProblem)
    -> any AudioDevice
  {
    let device: any AudioDevice
    switch settings.name.kind {
    case .pulse: device = PulseStream(settings, .capture(line, shape))
    case .alsa: device = ALSADevice(settings, .capture(line, shape))
    case .file, .null: device = try FileCapture(settings, line, shape)
    }
    try device.start()
    return device
  }

  /// Opens a playback device. Control side.
  static func open(_ settings: DeviceSettings, for line: PlaybackLine) throws(NodeProblem) -> any AudioDevice
  {
    let device: any AudioDevice
    switch settings.name.kind {
    case .pulse: device = PulseStream(settings, .playback(line))
    case .alsa: device = ALSADevice(settings, .playback(line))
    case .file, .null: device = try FilePlayback(settings, line)
    }
    try device.start()
    return device
  }
}

/// The priority of threads that carry audio.
enum AudioThread {
  /// Above the sound server's helper threads, below its real-time threads (5).
  private static let priority: Int32 = 4

  /// Requests real-time priority for the calling thread. If the system refuses, audio is still correct but may be late on a busy machine.
  static func raisePriority() { _ = millrace_set_thread_realtime(priority) }
}

/// A node's ownership of its device. Releasing it closes the device on another thread, because closing blocks.
final class DeviceHandle: Sendable {
  private let device: any AudioDevice
  private let kind: DeviceName.Kind

  init(_ device: any AudioDevice, _ kind: DeviceName.Kind) {
    self.device = device
    self.kind = kind
  }

  deinit { DeviceShutdown.end(device, kind) }
}

/// The format a capture device delivers.
struct CaptureFormat: Equatable {
  var rate: Int
  var channels: Int
  var sample: SampleType
}
