import MillraceCore
import MillraceRTCWire

@testable import MillraceRTC

/// The media of this side, watched.
final class MediaSession: SessionMediaObserver {
  /// How often something may be due at the same time.
  private static let mostAtOnce = 16
  /// Between two key frames that are wanted.
  private static let wishInterval: Nanoseconds = .milliseconds(300)
  private static let soundBitrate = 16_000...64_000
  private static let videoBitrate = 100_000...2_500_000

  let agreement: Agreement
  /// The sequence number of the picture packet that was sent last, and its number among all.
  private(set) var lastPacket: UInt16 = 0
  private(set) var lastNumber: UInt16 = 0
  private(set) var now: Nanoseconds = .milliseconds(1_000_000)
  private var media: SessionMedia?
  private var due: Nanoseconds?
  /// Virtual time that is left.
  private var time: Nanoseconds = .milliseconds(120_000)
  private var pictureSources: Set<UInt32> = []
  private var soundSources: Set<UInt32> = []
  private var wantedAt: Nanoseconds?

  init(_ agreement: Agreement) {
    self.agreement = agreement
    due = now
    media = SessionMedia(
      [
        MediaLine(mid: "0", kind: .audio, media: agreement.sound, source: Agreement.ownSound),
        MediaLine(mid: "1", kind: .video, media: agreement.video, source: Agreement.ownVideo),
      ], soundBitrate: Self.soundBitrate, videoBitrate: Self.videoBitrate, seed: 0x0123_4567_89AB_CDEF,
      at: now,
      observer: self)
  }

  // MARK: What happens

  func take(_ bytes: [UInt8], isRTCP: Bool) {
    if media?.take(bytes.span, isRTCP: isRTCP, at: now) ?? false { due = now }
    run(until: now)
  }

  func send(picture: [UInt8], isKey: Bool) {
    if media?.send(picture: picture.span, isKey: isKey, captured: now, at: now) ?? false { due = now }
    run(until: now)
  }

  func send(sound: [UInt8], pause: Int) {
    media?.send(
      sound: sound.span, duration: 960, pause: pause, level: RTPAudioLevel(attenuation: 30, hasSpeech: true),
      at: now)
  }

  func send(tones: String) {
    if media?.send(tones: tones, milliseconds: 100, gap: 70, at: now) ?? false { due = now }
    run(until: now)
  }

  func requestKeyFrame() { media?.requestKeyFrame(at: now) }

  /// Lets time pass, as much as is left.
  func wait(_ duration: Nanoseconds) {
    let step = min(duration, time)
    time -= step
    run(until: now + step)
  }

  private func run(until end: Nanoseconds) {
    var atOnce = 0
    while let next = due, next <= end {
      atOnce = next > now ? 0 : atOnce + 1
      if atOnce > Self.mostAtOnce { fatalError("at \(now) it wants to be called at \(next) again and again") }
      now = max(now, next)
      due = media?.run(at: now)
    }
    now = max(now, end)
  }

  func finish() {
    run(until: now + .milliseconds(2_000))
    guard let media else { return }
    let statistics = media.statistics
    if statistics.sendBitrate < 0 || statistics.video.refused < 0 || statistics.sound.jitter < 0 {
      fatalError("counts below zero: \(statistics)")
    }
    media.end(at: now)
  }

  // MARK: What it reports

  func mediaSends(_ packet: UnsafeMutableRawBufferPointer, count: Int, isRTCP: Bool) {
    if !(1...SoundSender.packetBytes).contains(count) || packet.count < count + SRTPContext.trailer {
      fatalError("a packet of \(count) bytes in \(packet.count)")
    }
    let bytes = Array(packet[..<count])
    if isRTCP { checkReports(bytes) } else { checkPacket(bytes) }
  }

  private func checkReports(_ bytes: [UInt8]) {
    var reader = RTCPReader(bytes.span)
    do throws(RTCPProblem) {
      var packets = 0
      while let packet = try reader.next() {
        if case .other(let other) = packet { fatalError("RTCP of type \(other.type.rawValue)") }
        packets += 1
      }
      if packets == 0 { fatalError("an empty datagram of RTCP") }
    } catch {
      fatalError("it sends RTCP that cannot be read: \(error)")
    }
  }

  private func checkPacket(_ bytes: [UInt8]) {
    let header: RTPHeader
    do throws(RTPProblem) { header = try RTPHeader(parsing: bytes.span) } catch {
      fatalError("it sends RTP that cannot be read: \(error)")
    }
    if header.ssrc == Agreement.videoSource { lastPacket = header.sequence }
    if let identifier = agreement.identifiers.transportSequence,
      let number = header.transportSequence(identifier, in: bytes.span)
    {
      lastNumber = number
    }
  }

  func mediaReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    if payload.isEmpty { fatalError("sound without a payload") }
    soundSources.insert(sound.ssrc)
    if soundSources.count > SoundEngine.sources { fatalError("\(soundSources.count) sources of sound") }
  }

  func mediaReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    if !(1...H264Depacketizer.standardCapacity).contains(bytes.count) {
      fatalError("a picture of \(bytes.count) bytes")
    }
    pictureSources.insert(picture.ssrc)
    if pictureSources.count > VideoEngine.sources {
      fatalError("\(pictureSources.count) sources of pictures")
    }
  }

  func mediaReceived(_ tone: ReceivedTone) {
    if !"0123456789*#ABCD".contains(tone.digit) || tone.milliseconds < 0 { fatalError("no key: \(tone)") }
  }

  func mediaLeft(_ ssrc: UInt32) {}

  func mediaEnded(_ ssrc: UInt32, reason: String?) {
    pictureSources.remove(ssrc)
    soundSources.remove(ssrc)
  }

  func mediaWantsKeyFrame(medium: Int) {
    if medium != 1 { fatalError("a key frame of medium \(medium), which is not that of pictures") }
    if let wantedAt, now - wantedAt < Self.wishInterval { fatalError("key frames at \(wantedAt) and \(now)") }
    wantedAt = now
  }

  func mediaAllocated(sound: Int, video: Int) {
    if !(0...Self.soundBitrate.upperBound).contains(sound)
      || !(0...Self.videoBitrate.upperBound).contains(video)
    {
      fatalError("\(sound) bits a second for sound, \(video) for pictures")
    }
  }
}
