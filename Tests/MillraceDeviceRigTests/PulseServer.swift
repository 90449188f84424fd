import Foundation
import Glibc

/// A private PulseAudio server without hardware: one null sink whose two channels are the microphone and the loudspeaker, so that both are
/// recorded on one clock, to the sample.
///
/// - `rig_mic`: the default source, which programs under test record. `rig_stimulus`: the sink that feeds it.
/// - `rig_speaker`: the default sink, which they play to.
/// - `rig_hub.monitor`: both; channel 0 is the microphone, channel 1 the loudspeaker.
final class PulseServer {
  /// True if the programs the rig needs are installed.
  static let isInstalled = ["pulseaudio", "pactl", "pacat", "parec"].allSatisfy { name in
    FileManager.default.isExecutableFile(atPath: "/usr/bin/\(name)")
  }

  static let rate = 48_000
  let folder: String
  private var server: RigProgram?
  private var socket: String { folder + "/native" }
  private var script: String { folder + "/rig.pa" }

  init() throws {
    var name = Array("/tmp/millrace-rig-XXXXXX".utf8CString)
    folder = name.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    for place in ["run", "home"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/\(place)", withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    }
    let lines = [
      "load-module module-native-protocol-unix auth-anonymous=1 socket=\(socket)",
      "load-module module-null-sink sink_name=rig_hub rate=\(Self.rate) format=float32le channels=2 channel_map=front-left,front-right",
      "load-module module-remap-sink sink_name=rig_stimulus master=rig_hub channels=1 master_channel_map=front-left channel_map=mono remix=no",
      "load-module module-remap-sink sink_name=rig_speaker master=rig_hub channels=1 master_channel_map=front-right channel_map=mono remix=no",
      "load-module module-remap-source source_name=rig_mic master=rig_hub.monitor channels=1 master_channel_map=front-left channel_map=mono remix=no",
      "set-default-sink rig_speaker", "set-default-source rig_mic",
    ]
    try (lines.joined(separator: "\n") + "\n").write(toFile: script, atomically: true, encoding: .utf8)
    try start()
    // libpulse in this process uses it to find the server.
    setenv("PULSE_SERVER", "unix:\(socket)", 1)
  }

  deinit {
    stop()
    unsetenv("PULSE_SERVER")
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// An environment in which programs find this server and nothing else on the machine.
  var environment: [String: String] {
    var values = ProcessInfo.processInfo.environment
    values["XDG_RUNTIME_DIR"] = folder + "/run"
    values["HOME"] = folder + "/home"
    values["PULSE_SERVER"] = "unix:\(socket)"
    return values
  }

  /// Starts the server and waits until it answers, for at most a minute.
  func start() throws {
    unlink(socket)
    var values = environment
    values["PULSE_SERVER"] = nil
    let server = try RigProgram(
      "/usr/bin/pulseaudio",
      [
        "-n", "-F", script, "--exit-idle-time=-1", "--daemonize=no", "--use-pid-file=no",
        "--log-target=file:\(folder)/pulse.log",
      ], values)
    self.server = server
    let answers = try poll(seconds: 60) { try !server.isRunning || control("info") == 0 }
    guard answers, server.isRunning else {
      throw RigProblem("pulseaudio did not start; see \(folder)/pulse.log")
    }
  }

  /// Terminates the server; kills it after three seconds.
  func stop() {
    guard let server else { return }
    self.server = nil
    server.terminate()
    server.wait(seconds: 3)
  }

  /// Runs `pactl` for at most half a minute and returns its status.
  @discardableResult
  func control(_ arguments: String...) throws -> Int32 {
    try RigProgram("/usr/bin/pactl", arguments, environment).wait(seconds: 30)
  }

  /// Runs the package's program for at most a minute and returns its output.
  func run(_ arguments: String...) throws -> String {
    let file = folder + "/output"
    let program = try RigProgram(RigProgram.millrace ?? "millrace", arguments, environment, output: file)
    guard program.wait(seconds: 60) == 0 else {
      throw RigProblem("millrace \(arguments.joined(separator: " ")) failed")
    }
    return try String(contentsOfFile: file, encoding: .utf8)
  }

  /// Adds a loudspeaker `rig_plug` that has its own clock.
  func plug() throws {
    guard try control("load-module", "module-null-sink", "sink_name=rig_plug", "rate=\(Self.rate)") == 0
    else {
      throw RigProblem("the server takes no further device")
    }
  }

  /// Removes `rig_plug`.
  func unplug() throws {
    let script =
      "pactl list short modules | awk '/rig_plug/ { print $1 }' | xargs --no-run-if-empty -n 1 pactl unload-module"
    guard try RigProgram("/bin/bash", ["-c", script], environment).wait(seconds: 30) == 0 else {
      throw RigProblem("the device could not be taken out")
    }
  }

  /// Plays samples into the microphone while recording both channels; returns microphone and loudspeaker. `warm`: seconds recorded before
  /// that.
  func record(playing stimulus: [Float], after warm: Double) throws -> (
    microphone: [Float], loudspeaker: [Float]
  ) {
    let sound = folder + "/stimulus.f32"
    try stimulus.withUnsafeBytes { Data($0) }.write(to: URL(fileURLWithPath: sound))
    return try record(after: warm) {
      let player = try RigProgram(
        "/usr/bin/pacat",
        [
          "-p", "-d", "rig_stimulus", "--format=float32le", "--channels=1", "--rate=\(Self.rate)",
          "--latency-msec=2000", "--raw", sound,
        ], environment)
      guard player.wait(seconds: Double(stimulus.count) / Double(Self.rate) + 60) == 0 else {
        throw RigProblem("the stimulus was not played")
      }
    }
  }

  /// Records both channels while `body` runs, starting `warm` seconds before it and including what is still in flight after it.
  func record(after warm: Double, _ body: () throws -> Void) throws -> (
    microphone: [Float], loudspeaker: [Float]
  ) {
    let file = folder + "/recording.f32"
    unlink(file)
    let recorder = try RigProgram(
      "/usr/bin/parec",
      [
        "-d", "rig_hub.monitor", "--format=float32le", "--channels=2", "--rate=\(Self.rate)",
        "--latency-msec=20",
        "--raw", file,
      ], environment)
    try wait(for: warm, more: 0, in: file)
    try body()
    try wait(for: 0.6, more: recorded(file), in: file)
    recorder.terminate()
    recorder.wait(seconds: 3)
    let data = try Data(contentsOf: URL(fileURLWithPath: file), options: .alwaysMapped)
    return data.withUnsafeBytes { bytes in
      let samples = bytes.bindMemory(to: Float.self)
      let frames = samples.count / 2
      return (Self.channel(0, of: samples, frames), Self.channel(1, of: samples, frames))
    }
  }

  private static func channel(_ channel: Int, of samples: UnsafeBufferPointer<Float>, _ frames: Int)
    -> [Float]
  {
    [Float](unsafeUninitializedCapacity: frames) { target, count in
      for frame in 0..<frames { target[frame] = samples[2 * frame + channel] }
      count = frames
    }
  }

  /// Seconds recorded so far.
  private func recorded(_ file: String) -> Double {
    var status = stat()
    guard stat(file, &status) == 0 else { return 0 }
    return Double(status.st_size) / Double(8 * Self.rate)
  }

  /// Waits until this many seconds are recorded, by the server's clock.
  private func wait(for seconds: Double, more than: Double, in file: String) throws {
    guard poll(seconds: seconds + 60, { recorded(file) > than + seconds }) else {
      throw RigProblem("the server gave nothing to record; see \(folder)/pulse.log")
    }
  }
}

/// A failure of the rig itself.
struct RigProblem: Error, CustomStringConvertible {
  let description: String
  init(_ text: String) { description = text }
}
