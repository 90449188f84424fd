internal import CALSA
internal import Glibc

/// The PCMs in the ALSA configuration.
enum ALSAListing {
  static func devices() -> [AudioDeviceList.Device] {
    millrace_alsa_silence()
    var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    guard unsafe snd_device_name_hint(-1, "pcm", &hints) >= 0, let first = unsafe hints else { return [] }
    defer { _ = unsafe snd_device_name_free_hint(first) }
    var devices: [AudioDeviceList.Device] = []
    var index = 0
    while let hint = unsafe first[index] {
      index += 1
      guard let name = unsafe text(hint, "NAME"), name != "null" else { continue }
      // No IOID means both directions.
      let direction = unsafe text(hint, "IOID")
      let description = unsafe text(hint, "DESC") ?? ""
      devices.append(
        AudioDeviceList.Device(
          device: "alsa:\(name)", name: name, text: description.replacing("\n", with: ", "),
          records: direction != "Output", plays: direction != "Input", rate: 0, channels: 0,
          isDefault: name == "default"))
    }
    return devices
  }

  private static func text(_ hint: UnsafeMutableRawPointer, _ field: String) -> String? {
    guard let value = unsafe snd_device_name_get_hint(hint, field) else { return nil }
    defer { unsafe free(value) }
    return unsafe String(cString: value)
  }
}
