internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore
internal import MillraceDSP
internal import MillraceFiles

/// Sound from any file FFmpeg's libraries read: FLAC, MP3, Ogg, MP4 and more, at the file's own rate and channels.
///
/// Samples keep their place: where a damaged stretch was left out and the file's times tell how long it was, there is
/// silence instead. Decoders of lossy sound are started before the sample a seek asks for, so that it comes out as it does
/// in an unbroken pass.
@safe
final class MediaSource: AudioSource {
  /// Code of the fault when the sound changes its rate or channels on the way.
  static let changed: Int32 = 1

  private let path: String
  /// An Ogg file without its last page.
  private let endsShort: Bool
  private var decoder: MediaDecoder
  private var converter: OpaquePointer?
  private var converterFormat: Int32 = -1
  /// Time of the file's first sample, in samples.
  private let origin: Int64
  /// The sample after the present frame, counted from the file's first.
  private var frontier: Int64
  /// Samples of the present frame already given.
  private var used = 0
  /// Silence due before the present frame.
  private var silence: Int64 = 0
  private var hasFrame = true
  /// Damage of decoders given back, and holes the decoder did not speak of.
  private var otherDamage = 0
  /// The decoder's damage when its present frame came.
  private var seenDamage = 0
  private var reopeningWords: String?

  /// Seconds decoded before the target of a seek: longer than the memory of MP3's bit reservoir and of Opus (RFC 7845
  /// asks for 80 ms).
  private static let preroll = 0.5
  /// Seconds of silence that a hole may become; a larger jump in the times is taken for an error in them.
  private static let longestHole: Int64 = 10
  /// Lossy containers keep times in coarse units: a smaller jump without damage is no hole.
  private static let jitter = 0.05
  /// Frames in a row of another rate or other channels that are damage: MP3 has no checksum, and noise may look like a frame.
  private static let mostStrange = 8

  init(_ path: String, sample: SampleType) throws(NodeProblem) {
    self.path = path
    decoder = try MediaDecoder(path)
    endsShort = decoder.isOgg && OggTail.isCut(path)
    origin = decoder.frameStart ?? 0
    frontier = decoder.frameLength
    super.init(decoder.facts, sample: sample)
    guard facts.rate > 0 && facts.channels > 0 && makeConverter() else {
      throw NodeProblem(
        "\"\(path)\" holds sound of an unknown kind", parameter: "path",
        cure: "convert it to WAV, FLAC, MP3, Ogg or MP4")
    }
  }

  deinit { unsafe swr_free(&converter) }

  override var isCut: Bool { endsShort || decoder.isCut || (decoder.mp3 != nil && MP3File.isCut(path)) }
  override var damageCount: Int { otherDamage + decoder.damageCount }
  override var lastWords: String? { reopeningWords ?? decoder.lastWords }

  /// Sets up the conversion from the present frame's sample type; the channels stay as they are.
  private func makeConverter() -> Bool {
    let format = unsafe decoder.frame.pointee.format
    guard format != converterFormat else { return true }
    unsafe swr_free(&converter)
    var layout = unsafe millrace_av_default_layout(Int32(facts.channels))
    var same = unsafe layout
    let target = AVSampleFormat(
      rawValue: sample == .s16 ? millrace_av_sample_s16 : millrace_av_sample_f32)
    let rate = Int32(facts.rate)
    let status = unsafe swr_alloc_set_opts2(
      &converter, &layout, target, rate, &same, AVSampleFormat(rawValue: format), rate, 0, nil)
    guard status >= 0, unsafe swr_init(converter) >= 0 else { return false }
    converterFormat = format
    return true
  }

  override func read(into bytes: UnsafeMutableRawBufferPointer) throws(NodeFault) -> Int {
    var wanted = bytes.count / frameBytes
    if facts.endsAtLength, let length = facts.length {
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

  /// Writes the next `count` samples of the present frame in the wanted type.
  private func convert(_ count: Int, to target: UnsafeMutableRawPointer) throws(NodeFault) {
    let frame = unsafe decoder.frame
    let format = unsafe AVSampleFormat(rawValue: frame.pointee.format)
    let isPlanar = av_sample_fmt_is_planar(format) != 0
    let step = Int(av_get_bytes_per_sample(format)) * (isPlanar ? 1 : facts.channels)
    var output: UnsafeMutablePointer<UInt8>? = unsafe target.assumingMemoryBound(to: UInt8.self)
    let given = unsafe withUnsafeTemporaryAllocation(of: UnsafePointer<UInt8>?.self, capacity: facts.channels)
    {
      planes in
      for plane in 0..<(isPlanar ? facts.channels : 1) {
        let start = unsafe UnsafePointer(frame.pointee.extended_data[plane])
        unsafe planes.initializeElement(at: plane, to: start.map { unsafe $0 + used * step })
      }
      return unsafe swr_convert(converter, &output, Int32(count), planes.baseAddress, Int32(count))
    }
    guard given == Int32(count) else { throw NodeFault(.library, code: given, detail: position) }
    guard sample == .f32 else { return }
    // A damaged frame may decode to anything.
    let first = unsafe target.assumingMemoryBound(to: Float.self)
    var samples = unsafe MutableSpan(_unsafeStart: first, count: count * facts.channels)
    SampleMath.limitToSound(&samples)
  }

  /// The next sample to be given, counted from the file's first.
  private var position: Int64 { frontier - (decoder.frameLength - Int64(used)) - silence }

  /// Decodes the next frame and finds its place.
  private func advance() throws(NodeFault) -> Bool {
    var strange = 0
    hasFrame = try decoder.next()
    while hasFrame, decoder.facts.rate != facts.rate || decoder.facts.channels != facts.channels {
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

  /// Samples missing before a frame; counts them as damage when the decoder did not.
  private func hole(before start: Int64?) -> Int64 {
    let isKnown = decoder.damageCount > seenDamage
    seenDamage = decoder.damageCount
    guard let start else { return 0 }
    let missing = start - origin - frontier
    let least = facts.tolerance == 0 || isKnown ? 0 : Int64(Self.jitter * Double(facts.rate))
    guard missing > least, missing <= Self.longestHole * Int64(facts.rate) else { return 0 }
    if !isKnown { otherDamage += 1 }
    return missing
  }

  override func seek(to target: Int64) throws(NodeFault) {
    let early = target - Int64(Self.preroll * Double(facts.rate))
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

  /// Starts from the first sample again, the way the file was opened: seeking there would not cut the encoder's delay off
  /// in every container.
  private func reopen() throws(NodeFault) {
    otherDamage += decoder.damageCount
    do { decoder = try MediaDecoder(path) } catch {
      otherDamage -= decoder.damageCount
      reopeningWords = error.text
      throw NodeFault(.gone)
    }
    begin(at: 0)
    guard makeConverter() else { throw NodeFault(.custom, code: Self.changed, detail: 0) }
  }
}
