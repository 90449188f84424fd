/// The audio devices of this machine. Control side: querying the sound server takes milliseconds, two seconds at most.
public enum AudioDeviceList {
  /// A device, with the directions it supports.
  public struct Device: Sendable, Hashable {
    /// The value for the parameter `device`.
    public var device: String
    /// The name without the kind.
    public var name: String
    /// The vendor's description.
    public var text: String
    /// True if the device can record.
    public var records: Bool
    /// True if the device can play.
    public var plays: Bool
    /// The native rate in Hz; 0 if the device follows the rate requested.
    public var rate: Int
    /// The native channel count; 0 if the device follows the count requested.
    public var channels: Int
    /// True for the device used when no name is given.
    public var isDefault = false
  }

  /// All devices: the sound server's, ALSA's, and the built-in ones.
  public static func all() -> [Device] { pulse() + alsa() + own }

  /// The sound server's devices; empty when no server is running.
  public static func pulse() -> [Device] { PulseListing().query() ?? [] }

  /// The PCMs in the ALSA configuration.
  public static func alsa() -> [Device] { ALSAListing.devices() }

  /// The built-in devices, which need neither a server nor hardware.
  public static let own = [
    Device(
      device: "file", name: "file", text: "a WAV file in real time", records: true, plays: true,
      rate: 0, channels: 0),
    Device(
      device: "null", name: "null", text: "silence, timed by the graph's clock", records: true,
      plays: true,
      rate: 0, channels: 0),
  ]
}
