internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceCore

/// Converts decoded audio of any format to interleaved samples with a fixed rate, channel count and type, with libswresample. Not thread-safe;
/// allocates.
@safe
final class SoundConverter {
  let rate: Int
  let channels: Int
  let sample: SampleType
  private var context: OpaquePointer?
  private var source = Source()

  /// The input format.
  private struct Source: Equatable {
    var format: Int32 = -1
    var rate: Int32 = 0
    var channels: Int32 = 0
  }

  init(rate: Int, channels: Int, sample: SampleType) {
    self.rate = rate
    self.channels = channels
    self.sample = sample
  }

  deinit { unsafe swr_free(&context) }

  private var frameBytes: Int { channels * sample.byteCount }

  /// Input not output yet: the resampler's delay. Zero if the rate does not change.
  var delay: Nanoseconds {
    guard unsafe context != nil else { return 0 }
    return unsafe swr_get_delay(context, 1_000_000_000)
  }

  /// Appends a frame's samples; returns how many per channel, or nil if the library does not support the format.
  func convert(_ frame: UnsafePointer<AVFrame>, into stock: inout [UInt8]) -> Int? {
    let count = unsafe frame.pointee.nb_samples
    guard unsafe prepare(frame) else { return nil }
    let room = unsafe swr_get_out_samples(context, count)
    guard room >= 0 else { return nil }
    let filled = stock.count
    stock.append(contentsOf: repeatElement(0, count: Int(room) * frameBytes))
    let given = unsafe stock.withUnsafeMutableBytes { bytes in
      var output = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self).advanced(by: filled)
      return unsafe UnsafeMutableRawPointer(frame.pointee.extended_data).withMemoryRebound(
        to: UnsafePointer<UInt8>?.self, capacity: Int(source.channels)
      ) { unsafe swr_convert(context, &output, room, $0, count) }
    }
    stock.removeLast(stock.count - filled - max(0, Int(given)) * frameBytes)
    return given < 0 ? nil : Int(given)
  }

  private func prepare(_ frame: UnsafePointer<AVFrame>) -> Bool {
    let wanted = unsafe Source(
      format: frame.pointee.format, rate: frame.pointee.sample_rate,
      channels: frame.pointee.ch_layout.nb_channels)
    if wanted == source, unsafe context != nil { return true }
    unsafe swr_free(&context)
    source = wanted
    // The default layout for the channel count: a frame with another layout keeps the order of its channels.
    var from = unsafe millrace_av_default_layout(wanted.channels)
    var to = unsafe millrace_av_default_layout(Int32(channels))
    let type = AVSampleFormat(rawValue: sample == .s16 ? millrace_av_sample_s16 : millrace_av_sample_f32)
    let status = unsafe swr_alloc_set_opts2(
      &context, &to, type, Int32(rate), &from, AVSampleFormat(rawValue: wanted.format), wanted.rate, 0, nil)
    guard status >= 0, unsafe swr_init(context) >= 0 else {
      unsafe swr_free(&context)
      return false
    }
    return true
  }
}
