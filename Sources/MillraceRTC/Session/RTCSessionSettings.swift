package import MillraceCore
package import MillraceRTCWire

/// How a session is set up.
package struct RTCSessionSettings: Sendable {
  package var ice = ICESettings()
  /// What is wanted or can be done.
  package var sections: [MediaSection] = [.audio()]
  /// Bits a second that sound may take.
  package var soundBitrate: ClosedRange<Int> = 16_000...64_000
  /// Bits a second that pictures may take. With less than the lower bound they pause.
  package var videoBitrate: ClosedRange<Int> = 100_000...2_500_000
  /// How long candidates are searched before a description without the rest is sent. Nil: 100 ms for those of this machine, and 5 s where
  /// servers are asked.
  package var gathering: Nanoseconds?
  /// From both descriptions to a connection.
  package var connect: Nanoseconds = .milliseconds(15_000)
  /// How long a connection may be interrupted.
  package var recovery: Nanoseconds = .milliseconds(10_000)
  /// The name of this side in its packets; a random one tells nothing about the machine (RFC 7022).
  package var cname: String?

  package init() {}
}

extension RTCSessionSettings {
  /// The sections with sources of this side, and telephone events beside the codecs of sound (RFC 4733 section 2.1).
  func describedSections() -> [MediaSection] {
    var generator = SystemRandomNumberGenerator()
    let cname = self.cname ?? String(generator.next(), radix: 36)
    var used: Set<UInt8> = []
    for codec in sections.flatMap({ $0.codecs }) {
      used.insert(codec.payloadType)
      if let rtx = codec.rtxPayloadType { used.insert(rtx) }
    }
    var numbers = Set(sections.compactMap { $0.source?.ssrc })
    func number() -> UInt32 {
      while true {
        let number = UInt32.random(in: 1...(.max), using: &generator)
        if numbers.insert(number).inserted { return number }
      }
    }
    return sections.map { section in
      var section = section
      guard section.kind != .application else { return section }
      if section.kind == .audio { Self.addTones(to: &section, &used) }
      guard section.source == nil else { return section }
      let rtx = section.codecs.contains { $0.rtxPayloadType != nil } ? number() : nil
      section.source = LocalSource(ssrc: number(), rtxSSRC: rtx, cname: cname)
      return section
    }
  }

  /// Adds telephone events for each clock rate that has none.
  private static func addTones(to section: inout MediaSection, _ used: inout Set<UInt8>) {
    var rates: [Int] = []
    for codec in section.codecs where !codec.isAuxiliary && !rates.contains(codec.clockRate) {
      rates.append(codec.clockRate)
    }
    for rate in rates where !section.codecs.contains(where: { $0.isTone && $0.clockRate == rate }) {
      var codec = RTPCodec.telephoneEvent(rate: rate)
      if used.contains(codec.payloadType) {
        guard let free = (96...127).first(where: { !used.contains($0) }) else { return }
        codec.payloadType = free
      }
      used.insert(codec.payloadType)
      section.codecs.append(codec)
    }
  }
}
