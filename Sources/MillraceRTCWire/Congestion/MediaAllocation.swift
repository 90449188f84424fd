/// How a target is shared between the encoders of a session: sound first, up to its maximum, and the rest for video.
///
/// The shares are payload, as encoders count it; the headers of each packet are taken off. Rates are bits per second.
public struct MediaAllocation: Sendable, Equatable {
  /// What the sound is given; 0: there is none.
  public var audio: Int64
  /// What the video is given; 0: there is none, or it pauses.
  public var video: Int64
  /// There is video, but not enough for it is left.
  public var isVideoPaused: Bool
  /// The sound is given its minimum although that is more than the target.
  public var exceedsTarget: Bool

  /// Bytes in each packet beside the payload.
  public struct Overhead: Sendable, Equatable {
    /// IP without options, and UDP (RFC 791, RFC 8200, RFC 768).
    public var network: Int
    /// The tag of SRTP: 10 with HMAC-SHA1-80 (RFC 3711, section 4.2.1), 16 with GCM (RFC 7714), 0 without SRTP.
    public var tag: Int
    /// The header of RTP without extensions (RFC 3550, section 5.1).
    public var header: Int
    /// The header extensions, with their head of four bytes and their padding.
    public var extensions: Int

    /// Creates an overhead; the default is that of IPv4 and HMAC-SHA1-80. IPv6 has 48 bytes in the place of 28.
    public init(network: Int = 28, tag: Int = 10, header: Int = 12, extensions: Int = 0) {
      self.network = network
      self.tag = tag
      self.header = header
      self.extensions = extensions
    }

    /// All of them; each counts between 0 and 65,535.
    var bytes: Int64 {
      Int64(CongestionUnit.packetBytes(network)) + Int64(CongestionUnit.packetBytes(tag))
        + Int64(CongestionUnit.packetBytes(header)) + Int64(CongestionUnit.packetBytes(extensions))
    }
  }

  /// What the sound asks for.
  public struct Audio: Sendable, Equatable {
    /// The least that the encoder is given, even when it is more than the target.
    public var minimum: Int64
    /// The most it can use.
    public var maximum: Int64
    /// The time of a packet in nanoseconds.
    public var packetTime: Int64
    /// What each packet adds.
    public var overhead: Overhead

    /// Creates a demand. The default rates are those of Opus for speech (RFC 7587, section 3.1.1).
    public init(
      minimum: Int64 = 16_000, maximum: Int64 = 40_000, packetTime: Int64 = 20_000_000,
      overhead: Overhead = Overhead()
    ) {
      self.minimum = minimum
      self.maximum = maximum
      self.packetTime = packetTime
      self.overhead = overhead
    }
  }

  /// What the video asks for.
  public struct Video: Sendable, Equatable {
    /// With less, the video pauses.
    public var floor: Int64
    /// The most it can use.
    public var maximum: Int64
    /// Bytes of payload in a packet.
    public var packetBytes: Int
    /// What each packet adds.
    public var overhead: Overhead

    /// Creates a demand.
    public init(floor: Int64, maximum: Int64, packetBytes: Int = 1_100, overhead: Overhead = Overhead()) {
      self.floor = floor
      self.maximum = maximum
      self.packetBytes = packetBytes
      self.overhead = overhead
    }
  }

  /// A paused video needs so much more than its floor to return, so that it does not flap (libwebrtc, `BitrateAllocator`:
  /// `kToggleFactor` and `kMinToggleBitrateBps`).
  private static let returnFactor = 0.1
  private static let leastReturn = 20_000.0

  /// Shares a target. `isVideoPaused` is what the last allocation said. Rates that are negative count as 0, a maximum below the
  /// minimum as the minimum.
  public static func share(
    _ target: Int64, audio: Audio?, video: Video?, isVideoPaused: Bool = false
  ) -> MediaAllocation {
    let budget = Double(max(0, min(target, BandwidthLimits.highest)))
    var result = MediaAllocation(audio: 0, video: 0, isVideoPaused: false, exceedsTarget: false)
    var rest = budget
    if let audio {
      let headers = audio.headers
      let (least, most) = range(audio.minimum, audio.maximum)
      let share = max(least, min(budget - headers, most))
      result.audio = Int64(share)
      result.exceedsTarget = share + headers > budget
      rest = max(0, budget - share - headers)
    }
    guard let video else { return result }
    let (floor, most) = range(video.floor, video.maximum)
    let share = min(rest * video.efficiency, most)
    let margin = isVideoPaused ? max(floor * returnFactor, leastReturn) : 0
    // A video whose maximum lies within the margin returns at its maximum.
    result.isVideoPaused = share < min(floor + margin, most) || share < 1
    result.video = result.isVideoPaused ? 0 : Int64(share)
    return result
  }

  private static func range(_ minimum: Int64, _ maximum: Int64) -> (Double, Double) {
    let least = max(0, min(minimum, BandwidthLimits.highest))
    return (Double(least), Double(max(least, min(maximum, BandwidthLimits.highest))))
  }
}

extension MediaAllocation.Audio {
  /// The shortest and the longest packet of Opus (RFC 6716, section 2.1.4; RFC 7587, section 4.2).
  private static let packetTimes: ClosedRange<Int64> = 2_500_000...120_000_000

  /// Bits per second of all headers.
  fileprivate var headers: Double {
    let time = max(Self.packetTimes.lowerBound, min(packetTime, Self.packetTimes.upperBound))
    return Double(overhead.bytes * 8) / CongestionUnit.seconds(time)
  }
}

extension MediaAllocation.Video {
  /// The part of the bytes that is payload.
  fileprivate var efficiency: Double {
    let payload = Int64(max(1, CongestionUnit.packetBytes(packetBytes)))
    return Double(payload) / Double(payload + overhead.bytes)
  }
}
