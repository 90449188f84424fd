internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore

/// The sound of a film in one sample type, at its own rate: as many samples as its times say, silence where some are missing.
/// Blocks; bulk lane.
@safe
final class FilmSound {
  let rate: Int
  let channels: Int
  let sample: SampleType
  /// When the first sample is due, in the file's time.
  let start: Nanoseconds
  /// Samples per channel given so far.
  private(set) var position: Int64 = 0
  let decoder: StreamDecoder
  private let converter: SoundConverter
  /// Decoded and not yet given.
  private var stock: [UInt8] = []
  private var used = 0
  private var hasEnded = false
  /// Where the next sample lies in the file is not known yet: `prepare` looks on.
  private(set) var isSought = false
  /// Seconds of silence that a hole may become; a larger jump in the times is taken for an error in them.
  private static let longestHole = 10.0
  /// A smaller jump is the coarseness of the file's times.
  private static let jitter = 0.05

  /// Opens the sound of a film and decodes the first of it. nil when there is none.
  init?(_ demuxer: Demuxer, sample: SampleType, beside video: Int) throws(NodeProblem) {
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_AUDIO, beside: video) else { return nil }
    decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: 1)
    self.sample = sample
    do throws(NodeFault) {
      guard try decoder.next() else { throw NodeFault(.badInput) }
    } catch {
      throw demuxer.problem(
        "holds no sound that can be decoded" + (decoder.lastMessage.map { ": \($0)" } ?? ""),
        cure: "check that it plays, or convert it again")
    }
    rate = unsafe Int(decoder.frame.pointee.sample_rate)
    channels = unsafe Int(decoder.frame.pointee.ch_layout.nb_channels)
    start = decoder.time ?? 0
    converter = SoundConverter(rate: rate, channels: channels, sample: sample)
    guard AudioLimits.rates.contains(rate), AudioLimits.channels.contains(channels) else {
      throw demuxer.problem(
        "has sound of \(rate) Hz and \(channels) channels",
        cure: "convert it first: ffmpeg -i FILE -ar 48000 -ac 2")
    }
    do throws(NodeFault) { try store() } catch {
      throw demuxer.problem("has sound of an unknown kind", cure: "convert it to AAC")
    }
  }

  private var frameBytes: Int { channels * sample.byteCount }

  /// Samples per channel in stock.
  private var stocked: Int { (stock.count - used) / frameBytes }

  /// When the next sample is due, in the file's time.
  var time: Nanoseconds { start &+ .samples(position, rate: rate) }

  /// Decodes until so many samples are in stock; answers how many there are then: fewer only at the end, none while they are sought.
  func prepare(_ count: Int) throws(NodeFault) -> Int {
    isSought = false
    while stocked < count && !hasEnded {
      guard let isThere = try decoder.look() else {
        isSought = true
        return 0
      }
      guard isThere else {
        hasEnded = true
        break
      }
      fillHole()
      try store()
    }
    return min(count, stocked)
  }

  /// Writes the next samples; as many as the target holds must be in stock.
  func write(into target: inout MutableSpan<UInt8>) {
    for index in target.indices { target[index] = stock[used + index] }
    used += target.count
    position += Int64(target.count / frameBytes)
    if used > 1 << 16 {
      stock.removeFirst(used)
      used = 0
    }
  }

  /// Puts silence in front of the present frame when its time says that something before it is missing.
  private func fillHole() {
    guard let time = decoder.time else { return }
    let expected = position + Int64(stocked)
    let place = Int64((Double(time &- start) * Double(rate) / 1e9).rounded())
    let missing = place - expected
    guard Double(missing) > Self.jitter * Double(rate), Double(missing) < Self.longestHole * Double(rate)
    else { return }
    stock.append(contentsOf: repeatElement(0, count: Int(missing) * frameBytes))
  }

  /// Converts the present frame into the stock.
  private func store() throws(NodeFault) {
    let frame = unsafe UnsafePointer(decoder.frame)
    guard unsafe Int(frame.pointee.sample_rate) == rate,
      unsafe Int(frame.pointee.ch_layout.nb_channels) == channels
    else { throw NodeFault(.custom, code: FilmReader.soundChanged) }
    guard unsafe converter.convert(frame, into: &stock) != nil else { throw NodeFault(.library, code: -1) }
  }
}
