import Glibc
import MillraceCore

/// `phone.keys`: reports the keys a caller presses, and silences their tones (DTMF, ITU-T Q.23).
///
/// - In `in`, out `out`: s16 PCM of at least 8 kHz, one channel. No latency; every sample keeps its position.
/// - A key counts once two steps of 20 ms in a row hold its tones: Q.24 asks for keys of 40 ms. So the first 40 to 60 ms of a tone pass,
///   and up to 60 ms after it are silent.
/// - A discontinuity begins again.
///
/// A program adds it to its catalogue: `catalogue.add(PhoneKeys.self)`.
public struct PhoneKeys: Node {
  public static let threshold = Parameter<Double>(
    "threshold", -60...0, unit: "dBFS", default: -40, live: true,
    text: "lowest level of each of a key's two tones")
  public static let mute = Parameter<Bool>(
    "mute", default: true, live: true, text: "whether tones are silenced")
  public static let pressed = EventContract(
    "pressed",
    text: "`key`, one of 0 to 9, *, #, A to D, is down; `position` in samples where that was certain")
  public static let contract = NodeContract(
    "phone.keys", "reports the keys a caller presses, and silences their tones",
    inputs: [
      PortContract(
        "in", .pcm(rates: .range(8_000...192_000), channels: .only(1), samples: [.s16]), text: "a caller")
    ],
    outputs: [PortContract("out", .pcm(), text: "the caller without the tones")],
    parameters: [threshold, mute], events: [pressed])

  private var threshold: LiveParameter<Double>
  private var mute: LiveParameter<Bool>
  private let pressed: EventPort
  private var tones: KeyTones
  /// The key that is down, and the one of the last step; as indices of `KeyTones.keys`.
  private var (down, last): (Int?, Int?) = (nil, nil)

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    threshold = setup.live(Self.threshold)
    mute = setup.live(Self.mute)
    pressed = setup.event(Self.pressed)
    tones = KeyTones(rate: setup.inputFormat().rate ?? 8_000)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let sound = ports.next() else { return .done }
    if sound.flags.contains(.discontinuity) {
      tones.restart()
      (down, last) = (nil, nil)
    }
    var packet = try ports.makeWritable(sound)
    let start = packet.position
    var samples = packet.mutableSamples(of: Int16.self)
    for index in samples.indices {
      tones.add(samples[index])
      if mute.value, down != nil { samples[index] = 0 }
      if tones.isStep { endStep(at: start + Int64(index), &ports) }
    }
    ports.emit(packet)
    return .done
  }

  private mutating func endStep(at position: Int64, _ ports: inout Ports) {
    let key = tones.key(threshold: threshold.value)
    tones.restart()
    defer { last = key }
    guard key == last, key != down else { return }
    down = key
    guard let key else { return }
    let keys = KeyTones.keys
    ports.post(pressed) {
      $0.field("key", utf8: keys.span.extracting(key..<key + 1))
      $0.field("position", Int(position))
    }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    _ = threshold.update(from: message) || mute.update(from: message)
  }
}
