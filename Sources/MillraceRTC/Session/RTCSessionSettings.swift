package import MillraceCore
package import MillraceRTCWire

/// How a session is set up.
package struct RTCSessionSettings: Sendable {
  package var ice = ICESettings()
  /// What is wanted or can be done, several of a kind too. In an offer they are the m-lines; in an answer each is for the m-line with its
  /// mid, or for the next of its kind.
  package var sections: [MediaSection] = [.audio()]
  /// Bits a second that the sound of one medium may take.
  package var soundBitrate: ClosedRange<Int> = 16_000...64_000
  /// Bits a second that the pictures of one medium may take. With less than the lower bound they pause.
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
  func describedSections() -> [MediaSection] { described(sections, beside: []) }

  /// The same for sections that come later than others.
  func described(_ sections: [MediaSection], beside others: [MediaSection]) -> [MediaSection] {
    var generator = SystemRandomNumberGenerator()
    let cname =
      self.cname ?? others.lazy.compactMap { $0.source?.cname }.first ?? String(generator.next(), radix: 36)
    var used: Set<UInt8> = []
    // In a bundle a payload type stands for one codec, in all media (RFC 9143 section 10.1.1).
    var tones: [Int: UInt8] = [:]
    for codec in (others + sections).flatMap({ $0.codecs }) {
      used.insert(codec.payloadType)
      if let rtx = codec.rtxPayloadType { used.insert(rtx) }
      if codec.isTone { tones[codec.clockRate] = tones[codec.clockRate] ?? codec.payloadType }
    }
    var numbers = Set((others + sections).compactMap { $0.source?.ssrc })
    numbers.formUnion(others.compactMap { $0.source?.rtxSSRC })
    func number() -> UInt32 {
      while true {
        let number = UInt32.random(in: 1...(.max), using: &generator)
        if numbers.insert(number).inserted { return number }
      }
    }
    return sections.map { section in
      var section = section
      guard section.kind != .application else { return section }
      if section.kind == .audio { Self.addTones(to: &section, &used, &tones) }
      guard section.source == nil else { return section }
      let rtx = section.codecs.contains { $0.rtxPayloadType != nil } ? number() : nil
      section.source = LocalSource(ssrc: number(), rtxSSRC: rtx, cname: cname)
      return section
    }
  }

  /// Adds telephone events for each clock rate that has none, by the payload type that they have in other media.
  private static func addTones(
    to section: inout MediaSection, _ used: inout Set<UInt8>, _ tones: inout [Int: UInt8]
  ) {
    var rates: [Int] = []
    for codec in section.codecs where !codec.isAuxiliary && !rates.contains(codec.clockRate) {
      rates.append(codec.clockRate)
    }
    for rate in rates where !section.codecs.contains(where: { $0.isTone && $0.clockRate == rate }) {
      var codec = RTPCodec.telephoneEvent(rate: rate)
      if let known = tones[rate] {
        codec.payloadType = known
      } else if used.contains(codec.payloadType) {
        guard let free = (96...127).first(where: { !used.contains($0) }) else { return }
        codec.payloadType = free
      }
      used.insert(codec.payloadType)
      tones[rate] = codec.payloadType
      section.codecs.append(codec)
    }
  }
}
