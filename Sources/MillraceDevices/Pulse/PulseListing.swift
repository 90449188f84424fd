internal import CMillraceSys
internal import CPulse
internal import MillraceCore

/// Queries the sound server for its devices, once, on the calling thread.
@safe
final class PulseListing {
  /// Longest wait, in nanoseconds.
  private static let timeout: Nanoseconds = 2_000_000_000

  private var devices: [AudioDeviceList.Device] = []
  private var defaultSource = ""
  private var defaultSink = ""

  private static func from(_ pointer: UnsafeMutableRawPointer?) -> PulseListing {
    guard let pointer = unsafe pointer else { fatalError("PulseAudio called back without context") }
    return unsafe Unmanaged<PulseListing>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// The devices; nil if no server answers.
  func query() -> [AudioDeviceList.Device]? {
    guard let loop = unsafe pa_mainloop_new() else { return nil }
    defer { unsafe pa_mainloop_free(loop) }
    guard let context = unsafe pa_context_new(pa_mainloop_get_api(loop), "Millrace") else { return nil }
    defer {
      unsafe pa_context_disconnect(context)
      unsafe pa_context_unref(context)
    }
    let end = millrace_monotonic_ns() + Self.timeout
    guard unsafe pa_context_connect(context, nil, PA_CONTEXT_NOAUTOSPAWN, nil) >= 0 else { return nil }
    while unsafe pa_context_get_state(context) != PA_CONTEXT_READY {
      let state = unsafe pa_context_get_state(context)
      guard state != PA_CONTEXT_FAILED, state != PA_CONTEXT_TERMINATED, unsafe iterate(loop, until: end)
      else {
        return nil
      }
    }
    let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
    let operations = unsafe [
      pa_context_get_server_info(
        context,
        { _, info, userData in
          if let info = unsafe info { unsafe PulseListing.from(userData).note(info.pointee) }
        },
        userData),
      pa_context_get_source_info_list(
        context,
        { _, info, _, userData in
          if let info = unsafe info { unsafe PulseListing.from(userData).note(info.pointee) }
        },
        userData),
      pa_context_get_sink_info_list(
        context,
        { _, info, _, userData in
          if let info = unsafe info { unsafe PulseListing.from(userData).note(info.pointee) }
        },
        userData),
    ]
    var isComplete = true
    for index in unsafe operations.indices {
      guard let operation = unsafe operations[index] else { continue }
      while unsafe pa_operation_get_state(operation) == PA_OPERATION_RUNNING {
        guard unsafe iterate(loop, until: end) else {
          isComplete = false
          unsafe pa_operation_cancel(operation)
          break
        }
      }
      unsafe pa_operation_unref(operation)
    }
    guard isComplete else { return nil }
    return devices.map { device in
      var device = device
      device.isDefault = device.name == (device.records ? defaultSource : defaultSink)
      return device
    }
  }

  /// Runs one iteration of the main loop; false on timeout.
  private func iterate(_ loop: OpaquePointer, until end: Nanoseconds) -> Bool {
    let left = (end - millrace_monotonic_ns()) / 1_000
    guard left > 0, unsafe pa_mainloop_prepare(loop, Int32(min(left, 1_000_000))) >= 0 else { return false }
    guard unsafe pa_mainloop_poll(loop) >= 0 else { return false }
    return unsafe pa_mainloop_dispatch(loop) >= 0
  }

  private func note(_ info: pa_server_info) {
    defaultSource = unsafe text(info.default_source_name)
    defaultSink = unsafe text(info.default_sink_name)
  }

  private func note(_ info: pa_source_info) {
    unsafe add(text(info.name), text(info.description), records: true, info.sample_spec)
  }

  private func note(_ info: pa_sink_info) {
    unsafe add(text(info.name), text(info.description), records: false, info.sample_spec)
  }

  private func add(_ name: String, _ description: String, records: Bool, _ form: pa_sample_spec) {
    devices.append(
      AudioDeviceList.Device(
        device: "pulse:\(name)", name: name, text: description, records: records, plays: !records,
        rate: Int(form.rate), channels: Int(form.channels)))
  }

  private func text(_ pointer: UnsafePointer<CChar>?) -> String {
    unsafe pointer.map { unsafe String(cString: $0) } ?? ""
  }
}
