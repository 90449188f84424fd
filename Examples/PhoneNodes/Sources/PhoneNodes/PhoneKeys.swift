import MillraceCore

/// `phone.keys`: reports the keys a caller presses (DTMF, ITU-T Q.23), and silences their tones.
///
/// `in`, `out`: s16 PCM from 8 kHz, one channel; no latency. A key counts once two steps of 20 ms in a row hold its tones (Q.24: 40 ms).
/// So the first 40 to 60 ms of a tone pass, and up to 60 ms after it are silent. A discontinuity restarts the detector.
public struct PhoneKeys: Node {
  public static let threshold = Parameter<Double>(
    "threshold", -60...0, unit: "dBFS", default: -40, live: true, text: "lowest level of each tone")
  public static let mute = Parameter<Bool>("mute", default: true, live: true, text: "silence the tones")
  public static let pressed = EventContract("pressed", text: "`key` went down: 0 to 9, *, #, A to D")
  private static let phone = FormatConstraint.pcm(
    rates: .range(8_000...192_000), channels: .only(1), samples: [.s16])
  public static let contract = NodeContract(
    "phone.keys", "reports the keys a caller presses, and silences their tones",
    inputs: [PortContract("in", phone, text: "a caller")],
    outputs: [PortContract("out", .pcm(), text: "the caller without the tones")],
    parameters: [threshold, mute], events: [pressed])

  private var threshold: LiveParameter<Double>
  private var mute: LiveParameter<Bool>
  private let pressed: EventPort
  private let keys = Array("123A456B789C*0#D".utf8)
  private var tones: KeyTones
  /// The key that is down, and the one of the last step: indices into `keys`.
  private var (down, last): (Int?, Int?) = (nil, nil)

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    threshold = setup.live(Self.threshold)
    mute = setup.live(Self.mute)
    pressed = setup.event(Self.pressed)
    tones = KeyTones(rate: setup.inputFormat().rate ?? 8_000)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let caller = ports.next() else { return .done }
    if caller.flags.contains(.discontinuity) {
      tones.restart()
      (down, last) = (nil, nil)
    }
    var packet = try ports.makeWritable(caller)
    var samples = packet.mutableSamples(of: Int16.self)
    for index in samples.indices {
      tones.add(Double(samples[index]) / 32_768)
      if mute.value, down != nil { samples[index] = 0 }
      if tones.isStep { endStep(&ports) }
    }
    ports.emit(packet)
    return .done
  }

  private mutating func endStep(_ ports: inout Ports) {
    let key = tones.key(threshold: threshold.value)
    let keys = self.keys
    tones.restart()
    defer { last = key }
    guard key == last, key != down else { return }
    down = key
    if let key { ports.post(pressed) { $0.field("key", utf8: keys.span.extracting(key..<key + 1)) } }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    _ = threshold.update(from: message) || mute.update(from: message)
  }
}
