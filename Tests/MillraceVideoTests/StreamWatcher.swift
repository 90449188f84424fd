import CFFmpeg
import CMediaShim
import Glibc
import MillraceCore
import TestMedia

@testable import MillraceVideo

/// Plays a stream on its own thread, and records what it shows and when, in stream time.
final class StreamWatcher: Sendable {
  struct Seen: Sendable {
    /// Times of the pictures in ms, and the luma of their first pixel.
    var times: [Double] = []
    var lumas: [UInt8] = []
    /// When the first sample is due, in ms, and the samples.
    var soundStart: Double?
    var samples: [Int16] = []
    var size = (width: 0, height: 0)
    var connections = 0
    var hasEnded = false

    /// When pictures turn bright.
    var flashes: [Double] {
      times.indices.dropFirst().filter { lumas[$0] > 128 && lumas[$0 - 1] <= 128 }.map { times[$0] }
    }

    /// When audio becomes loud after 100 ms of silence.
    var clicks: [Double] {
      var found: [Double] = []
      var quiet = 0
      for (frame, sample) in samples.enumerated() {
        quiet += 1
        guard abs(Int(sample)) > 6_000 else { continue }
        if quiet > 4_800 { found.append((soundStart ?? 0) + Double(frame) / 48) }
        quiet = 0
      }
      return found
    }
  }

  private let shared = Locked(Seen())
  private let wantsEnd = Locked(false)
  private let url: String

  /// Starts playing; retries a stream that is not there.
  init(_ url: String) {
    self.url = url
    _ = DetachedThread.start("watcher") { self.run() }
  }

  var seen: Seen { shared.withLock { $0 } }

  /// Stops after the packet it waits for.
  func stop() { wantsEnd.withLock { $0 = true } }

  private func run() {
    while !wantsEnd.withLock({ $0 }) {
      var place = Demuxer.Source(file: "")
      place.url = url
      place.options = [
        "rtmp_live": "live", "rtmp_buffer": "0", "tcp_nodelay": "1", "rw_timeout": "120000000",
      ]
      if let video = try? VideoFileReader(place, threads: 1, sound: .s16) { watch(video) }
      usleep(50_000)
    }
    shared.withLock { $0.hasEnded = true }
  }

  private func watch(_ video: VideoFileReader) {
    guard let pictures = video.pictures, let sound = video.sound else { return }
    let start = Double(sound.start) / 1e6
    let size = (pictures.width, pictures.height)
    shared.withLock { seen in
      seen.connections += 1
      seen.soundStart = seen.soundStart ?? start
      seen.size = size
    }
    var bytes = [UInt8](repeating: 0, count: pictures.byteCount)
    do {
      repeat {
        var span = bytes.mutableSpan
        try pictures.write(into: &span)
        let (time, luma) = (Double(pictures.time) / 1e6, bytes[0])
        shared.withLock { seen in
          seen.times.append(time)
          seen.lumas.append(luma)
        }
        while try sound.time < pictures.time && sound.prepare(480) == 480 {
          var part = [UInt8](repeating: 0, count: 960 * sound.channels)
          var target = part.mutableSpan
          sound.write(into: &target)
          let samples = stride(from: 0, to: part.count, by: 2 * sound.channels).map {
            Int16(bitPattern: UInt16(part[$0]) | UInt16(part[$0 + 1]) << 8)
          }
          shared.withLock { $0.samples += samples }
        }
      } while try !wantsEnd.withLock { $0 } && pictures.next()
    } catch {}
  }
}
