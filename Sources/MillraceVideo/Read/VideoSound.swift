internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore

/// Reads the audio of a video in one sample format at its own rate: as many samples as its timestamps say, with silence for gaps. Blocks; bulk
/// lane.
@safe
final class VideoSound {
  let rate: Int
  let channels: Int
  let sample: SampleType
  /// When the first sample is due, in the file's time.
  let start: Nanoseconds
  /// Samples per channel read so far.
  private(set) var position: Int64 = 0
  let decoder: StreamDecoder
  private let converter: SoundConverter
  /// Decoded samples not taken yet.
  private var stock: [UInt8] = []
  private var used = 0
  private var hasEnded = false
  /// The next sample was not found in the file yet: call `prepare` again.
  private(set) var isSought = false
  /// Longest gap filled with silence, in seconds; a larger jump is taken for an error in the timestamps.
  private static let longestGap = 10.0
  /// Smaller jumps are timestamp rounding.
  private static let jitter = 0.05

  /// Opens the audio of a video and decodes its start. nil if there is none.
  init?(_ demuxer: Demuxer, sample: SampleType, beside video: Int) throws(NodeProblem) {
    guard let (index, codec) = unsafe try demuxer.best(AVMEDIA_TYPE_AUDIO, beside: video) else { return nil }
    decoder = unsafe try StreamDecoder(demuxer, index, codec, threads: 1)
    self.sample = sample
    do throws(NodeFault) {
      guard try decoder.next() else { throw NodeFault(.badInput) }
    } catch {
      throw demuxer.problem(
        "contains no audio that can be decoded" + (decoder.lastMessage.map { ": \($0)" } ?? ""),
        cure: "check that it plays, or convert it again")
    }
    rate = unsafe Int(decoder.frame.pointee.sample_rate)
    channels = unsafe Int(decoder.frame.pointee.ch_layout.nb_channels)
    start = decoder.time ?? 0
    converter = SoundConverter(rate: rate, channels: channels, sample: sample)
    guard AudioLimits.rates.contains(rate), AudioLimits.channels.contains(channels) else {
      throw demuxer.problem(
        "has audio of \(rate) Hz with \(channels) channels, which is not supported",
        cure: "convert it first: ffmpeg -i FILE -ar 48000 -ac 2")
    }
    do throws(NodeFault) { try store() } catch {
      throw demuxer.problem("has audio in an unknown format", cure: "convert it to AAC")
    }
  }

  private var frameBytes: Int { channels * sample.byteCount }

  /// Samples per channel in the buffer.
  private var stocked: Int { (stock.count - used) / frameBytes }

  /// When the next sample is due, in the file's time.
  var time: Nanoseconds { start &+ .samples(position, rate: rate) }

  /// Decodes until this many samples are buffered; returns how many there are: fewer only at the end, 0 while they are being searched for.
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
      fillGap()
      try store()
    }
    return min(count, stocked)
  }

  /// Writes the next samples; the target must not hold more than are buffered.
  func write(into target: inout MutableSpan<UInt8>) {
    for index in target.indices { target[index] = stock[used + index] }
    used += target.count
    position += Int64(target.count / frameBytes)
    if used > 1 << 16 {
      stock.removeFirst(used)
      used = 0
    }
  }

  /// Inserts silence before the current frame if its timestamp shows a gap.
  private func fillGap() {
    guard let time = decoder.time else { return }
    let expected = position + Int64(stocked)
    let place = Int64((Double(time &- start) * Double(rate) / 1e9).rounded())
    let missing = place - expected
    guard Double(missing) > Self.jitter * Double(rate), Double(missing) < Self.longestGap * Double(rate)
    else { return }
    stock.append(contentsOf: repeatElement(0, count: Int(missing) * frameBytes))
  }

  /// Converts the current frame into the buffer.
  private func store() throws(NodeFault) {
    let frame = unsafe UnsafePointer(decoder.frame)
    guard unsafe Int(frame.pointee.sample_rate) == rate,
      unsafe Int(frame.pointee.ch_layout.nb_channels) == channels
    else { throw NodeFault(.custom, code: VideoFileReader.soundChanged) }
    guard unsafe converter.convert(frame, into: &stock) != nil else { throw NodeFault(.library, code: -1) }
  }
}
