internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles

/// Audio from any file FFmpeg's libraries read: FLAC, MP3, Ogg, MP4 and more, at the file's own rate and channels.
///
/// Samples keep their position: where a damaged stretch was skipped and the file's timestamps give its length, there is silence
/// instead. Lossy decoders are started before the target of a seek, so that the output is the same as in an uninterrupted pass.
@safe
final class MediaSource: AudioSource {
  /// Code of the fault when rate or channels change inside the file.
  static let changed: Int32 = 1

  private let path: String
  /// An Ogg file without its last page.
  private let endsShort: Bool
  private var decoder: MediaDecoder
  private var converter: OpaquePointer?
  private var converterFormat: Int32 = -1
  /// Time of the file's first sample, in samples.
  private let origin: Int64
  /// Position after the current frame, counted from the file's first sample.
  private var frontier: Int64
  /// Samples of the current frame already emitted.
  private var used = 0
  /// Silence due before the current frame.
  private var silence: Int64 = 0
  private var hasFrame = true
  /// Damage counted by closed decoders, and holes the decoder did not report.
  private var otherDamage = 0
  /// The decoder's damage count when its current frame arrived.
  private var seenDamage = 0
  private var reopeningMessage: String?

  /// Seconds decoded before the target of a seek: longer than the memory of MP3's bit reservoir and of Opus (RFC 7845 requires 80
  /// ms).
  private static let preroll = 0.5
  /// Longest hole filled with silence, in seconds; a larger jump counts as a timestamp error.
  private static let longestHole: Int64 = 10
  /// Timestamps of lossy containers are coarse: a smaller jump without damage is not a hole.
  private static let jitter = 0.05
  /// Consecutive frames of another rate or channel count that still count as damage: MP3 has no checksum, and noise may look like a
  /// frame.
  private static let mostStrange = 8

  init(_ path: String, sample: SampleType) throws(NodeProblem) {
    self.path = path
    decoder = try MediaDecoder(path)
    endsShort = decoder.isOgg && OggTail.isTruncated(path)
    origin = decoder.frameStart ?? 0
    frontier = decoder.frameLength
    super.init(decoder.info, sample: sample)
    guard info.rate > 0 && info.channels > 0 && makeConverter() else {
      throw NodeProblem(
        "\"\(path)\" holds audio of an unknown kind", parameter: "path",
        cure: "convert it to WAV, FLAC, MP3, Ogg or MP4")
    }
  }

  deinit { unsafe swr_free(&converter) }

  override var isTruncated: Bool {
    endsShort || decoder.isTruncated || (decoder.mp3 != nil && MP3File.isTruncated(path))
  }
  override var damageCount: Int { otherDamage + decoder.damageCount }
  override var lastMessage: String? { reopeningMessage ?? decoder.lastMessage }

  /// Sets up the conversion from the current frame's sample type; the channels are unchanged.
  private func makeConverter() -> Bool {
    let format = unsafe decoder.frame.pointee.format
    guard format != converterFormat else { return true }
    unsafe swr_free(&converter)
    var layout = unsafe millrace_av_default_layout(Int32(info.channels))
    var same = unsafe layout
    let target = AVSampleFormat(
      rawValue: sample == .s16 ? millrace_av_sample_s16 : millrace_av_sample_f32)
    let rate = Int32(info.rate)
    let status = unsafe swr_alloc_set_opts2(
      &converter, &layout, target, rate, &same, AVSampleFormat(rawValue: format), rate, 0, nil)
    guard status >= 0, unsafe swr_init(converter) >= 0 else { return false }
    converterFormat = format
    return true
  }

  override func read(into bytes: UnsafeMutableRawBufferPointer) throws(NodeFault) -> Int {
    var wanted = bytes.count / frameBytes
    if info.endsAtLength, let length = info.length {
      wanted = Int(max(0, min(Int64(wanted), length - position)))
    }
    var done = 0
    while done < wanted {
      if silence > 0 {
        let count = Int(min(silence, Int64(wanted - done)))
        let target = unsafe UnsafeMutableRawBufferPointer(
          rebasing: bytes[done * frameBytes..<(done + count) * frameBytes])
        unsafe target.initializeMemory(as: UInt8.self, repeating: 0)
        silence -= Int64(count)
        done += count
      } else if hasFrame, used < Int(decoder.frameLength) {
        let count = min(Int(decoder.frameLength) - used, wanted - done)
        guard let target = unsafe bytes.baseAddress?.advanced(by: done * frameBytes) else { break }
        try unsafe convert(count, to: target)
        used += count
        done += count
      } else {
        guard hasFrame, try advance() else { break }
      }
    }
    return done
  }

  /// Writes the next `count` samples of the current frame in the requested type.
  private func convert(_ count: Int, to target: UnsafeMutableRawPointer) throws(NodeFault) {
    let frame = unsafe decoder.frame
    let format = unsafe AVSampleFormat(rawValue: frame.pointee.format)
    let isPlanar = av_sample_fmt_is_planar(format) != 0
    let step = Int(av_get_bytes_per_sample(format)) * (isPlanar ? 1 : info.channels)
    var output: UnsafeMutablePointer<UInt8>? = unsafe target.assumingMemoryBound(to: UInt8.self)
    let given = unsafe withUnsafeTemporaryAllocation(of: UnsafePointer<UInt8>?.self, capacity: info.channels)
    {
      planes in
      for plane in 0..<(isPlanar ? info.channels : 1) {
        let start = unsafe UnsafePointer(frame.pointee.extended_data[plane])
        unsafe planes.initializeElement(at: plane, to: start.map { unsafe $0 + used * step })
      }
      return unsafe swr_convert(converter, &output, Int32(count), planes.baseAddress, Int32(count))
    }
    guard given == Int32(count) else { throw NodeFault(.library, code: given, detail: position) }
    guard sample == .f32 else { return }
    // A damaged frame may decode to anything.
    let first = unsafe target.assumingMemoryBound(to: Float.self)
    var samples = unsafe MutableSpan(_unsafeStart: first, count: count * info.channels)
    SampleMath.sanitize(&samples)
  }

  /// The next sample to emit, counted from the file's first.
  private var position: Int64 { frontier - (decoder.frameLength - Int64(used)) - silence }

  /// Decodes the next frame and finds its position.
  private func advance() throws(NodeFault) -> Bool {
    var strange = 0
    hasFrame = try decoder.next()
    while hasFrame, decoder.info.rate != info.rate || decoder.info.channels != info.channels {
      strange += 1
      guard strange <= Self.mostStrange else {
        throw NodeFault(.custom, code: Self.changed, detail: frontier)
      }
      hasFrame = try decoder.next()
    }
    if strange > 0 { otherDamage += 1 }
    guard hasFrame else { return false }
    used = 0
    guard makeConverter() else { throw NodeFault(.custom, code: Self.changed, detail: frontier) }
    silence = hole(before: decoder.frameStart)
    frontier += silence + decoder.frameLength
    return true
  }

  /// Samples missing before a frame; counted as damage if the decoder did not.
  private func hole(before start: Int64?) -> Int64 {
    let isKnown = decoder.damageCount > seenDamage
    seenDamage = decoder.damageCount
    guard let start else { return 0 }
    let missing = start - origin - frontier
    let least = info.tolerance == 0 || isKnown ? 0 : Int64(Self.jitter * Double(info.rate))
    guard missing > least, missing <= Self.longestHole * Int64(info.rate) else { return 0 }
    if !isKnown { otherDamage += 1 }
    return missing
  }

  override func seek(to target: Int64) throws(NodeFault) {
    let early = target - Int64(Self.preroll * Double(info.rate))
    if early > 0, try decoder.seek(toStreamSample: origin + early), let start = decoder.frameStart,
      start - origin <= target
    {
      begin(at: start - origin)
    } else {
      try reopen()
    }
    while position < target {
      let left = target - position
      if silence > 0 {
        silence -= min(silence, left)
      } else if used < Int(decoder.frameLength) {
        used += Int(min(left, decoder.frameLength - Int64(used)))
      } else {
        guard try advance() else { return }
      }
    }
  }

  private func begin(at position: Int64) {
    used = 0
    silence = 0
    hasFrame = true
    seenDamage = decoder.damageCount
    frontier = position + decoder.frameLength
  }

  /// Restarts from the first sample by reopening the file: in some containers, seeking there would not remove the encoder's delay.
  private func reopen() throws(NodeFault) {
    otherDamage += decoder.damageCount
    do { decoder = try MediaDecoder(path) } catch {
      otherDamage -= decoder.damageCount
      reopeningMessage = error.text
      throw NodeFault(.gone)
    }
    begin(at: 0)
    guard makeConverter() else { throw NodeFault(.custom, code: Self.changed, detail: 0) }
  }
}
