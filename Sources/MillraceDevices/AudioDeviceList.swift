/// The sound devices of this machine. Control side: asking a sound server takes milliseconds, two seconds at most.
public enum AudioDeviceList {
  /// One device in one direction or both.
  public struct Device: Sendable, Hashable {
    /// What the parameter `device` takes.
    public var device: String
    /// Its name alone.
    public var name: String
    /// What its makers call it.
    public var text: String
    /// It has sound for a graph.
    public var records: Bool
    /// It takes sound of a graph.
    public var plays: Bool
    /// Its own rate in Hz; 0: whatever is asked for.
    public var rate: Int
    /// Its own channels; 0: whatever is asked for.
    public var channels: Int
    /// The device that is used when none is named.
    public var isDefault = false
  }

  /// Every device: those of the sound server, those of ALSA, and those that are always there.
  public static func all() -> [Device] { pulse() + alsa() + own }

  /// Those of the sound server; none when there is no server.
  public static func pulse() -> [Device] { PulseListing().ask() ?? [] }

  /// Those that ALSA's configuration names.
  public static func alsa() -> [Device] { ALSAListing.devices() }

  /// Those that need neither server nor hardware.
  public static let own = [
    Device(
      device: "file", name: "file", text: "a WAV file at the pace of a device", records: true, plays: true,
      rate: 0, channels: 0),
    Device(
      device: "null", name: "null", text: "silence, in time with the graph's clock", records: true,
      plays: true,
      rate: 0, channels: 0),
  ]
}
