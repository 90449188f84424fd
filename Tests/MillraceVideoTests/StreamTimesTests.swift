import MillraceCore
import MillraceVideo
import Testing

@Suite("timestamps of a live stream")
struct StreamTimesTests {
  private static let second: Nanoseconds = 1_000_000_000
  private static let millisecond: Nanoseconds = 1_000_000

  // MARK: The clock

  @Test("the fastest packet has no delay, and the others are late relative to it")
  func quickest() {
    var clock = StreamClock()
    for (time, arrival) in [(0, 100), (40, 130), (80, 200)] as [(Int64, Int64)] {
      let isOn = clock.note(time * Self.millisecond, arrival: arrival * Self.millisecond)
      #expect(isOn)
    }
    #expect(clock.time(80 * Self.millisecond) == 170 * Self.millisecond)
  }

  @Test("a slow sender clock is followed within ten seconds, a fast one at once")
  func drift() {
    for rate in [1_000, -1_000] as [Int64] {
      var clock = StreamClock()
      var last: Nanoseconds = 0
      for step in 0..<6_000 as Range<Int64> {
        let time = step * 10 * Self.millisecond
        // 0.1 % slow or fast, a hundred times worse than a real clock.
        last = time + time / rate
        _ = clock.note(time, arrival: last)
      }
      let late = last - clock.time(5_999 * 10 * Self.millisecond)
      #expect((0...10 * Self.millisecond + 10_000).contains(late), "\(late)")
      if rate < 0 { #expect(late == 0) }
    }
  }

  @Test("three seconds of delay count as delay; timestamps that restart are detected and followed")
  func restart() {
    var clock = StreamClock()
    let first = clock.note(60 * Self.second, arrival: 100 * Self.second)
    let delayed = clock.note(61 * Self.second, arrival: 104 * Self.second)
    #expect(first && delayed)
    #expect(clock.time(61 * Self.second) == 101 * Self.second)
    let restart = clock.note(0, arrival: 105 * Self.second)
    #expect(!restart)
    #expect(clock.time(Self.second) == 106 * Self.second)
  }

  @Test("a preempted call does not make its data older")
  func putAside() {
    var times = GraphTimes()
    times.note(20 * Self.second, monotonic: 500 * Self.second + Self.millisecond)
    #expect(times.time(501 * Self.second) == 21 * Self.second - Self.millisecond)
    times.note(21 * Self.second, monotonic: 501 * Self.second)
    times.note(22 * Self.second, monotonic: 505 * Self.second)
    #expect(times.time(502 * Self.second) == 22 * Self.second)
  }

  // MARK: Sound

  /// A piece of 16-bit mono audio at 1 kHz, whose bytes all have one value.
  private func piece(
    _ value: UInt8, ms: Int, at streamTime: Int64, came: Int64, connection: Int = 1, followsLoss: Bool = false
  ) -> StreamSound {
    var piece = StreamSound(
      bytes: [UInt8](repeating: value, count: 2 * ms), time: came * Self.millisecond,
      streamTime: streamTime * Self.millisecond, connection: connection)
    piece.followsLoss = followsLoss
    return piece
  }

  /// Everything available now: position, time in ms, samples, first value.
  private func given(_ queue: inout StreamSoundQueue) -> [[Int]] {
    var all: [[Int]] = []
    while true {
      let count = queue.prepare()
      guard count > 0 else { return all }
      let (position, time) = (queue.position, queue.time)
      var bytes = [UInt8](repeating: 0, count: 2 * count)
      var span = bytes.mutableSpan
      queue.write(into: &span)
      all.append([Int(position), Int(time / Self.millisecond), count, Int(bytes[0])])
    }
  }

  @Test(
    "pieces that follow each other are one sound, in packets of one length, however late they came")
  func onward() {
    var queue = StreamSoundQueue(rate: 1_000, frameBytes: 2, frames: 20)
    queue.append([piece(1, ms: 30, at: 500, came: 0), piece(2, ms: 30, at: 530, came: 90)])
    #expect(given(&queue) == [[0, 0, 20, 1], [20, 80, 20, 1], [40, 100, 20, 2]])
    queue.append([piece(3, ms: 10, at: 561, came: 60)])
    #expect(given(&queue) == [])
    queue.append([piece(4, ms: 10, at: 571, came: 70)])
    #expect(given(&queue) == [[60, 60, 20, 3]])
  }

  @Test(
    "before a gap in the stream the rest is emitted first, and positions keep the gap"
  )
  func hole() {
    var queue = StreamSoundQueue(rate: 1_000, frameBytes: 2, frames: 20)
    queue.append([piece(1, ms: 30, at: 0, came: 1_000), piece(2, ms: 20, at: 130, came: 1_130)])
    #expect(given(&queue) == [[0, 1_000, 20, 1], [20, 1_020, 10, 1], [130, 1_130, 20, 2]])
  }

  @Test("the queue says what the stream skips, but not where a connection begins or sound was dropped")
  func skipped() {
    var queue = StreamSoundQueue(rate: 1_000, frameBytes: 2, frames: 20)
    queue.append([
      piece(1, ms: 20, at: 0, came: 1_000), piece(2, ms: 40, at: 130, came: 5_000),
      piece(3, ms: 20, at: 900, came: 6_000, connection: 2),
      piece(4, ms: 20, at: 1_200, came: 6_300, connection: 2, followsLoss: true),
    ])
    var skips: [Int] = []
    while queue.prepare() > 0 {
      skips.append(queue.skipped)
      var bytes = [UInt8](repeating: 0, count: 40)
      var span = bytes.mutableSpan
      queue.write(into: &span)
    }
    #expect(skips == [0, 110, 0, 0, 0])
  }

  @Test("another connection's audio is placed by the clock, never before what was emitted")
  func connections() {
    var queue = StreamSoundQueue(rate: 1_000, frameBytes: 2, frames: 20)
    queue.append([
      piece(1, ms: 20, at: 0, came: 0), piece(2, ms: 20, at: 20, came: 3_000, connection: 2),
      piece(3, ms: 20, at: 0, came: 10, connection: 3),
    ])
    #expect(given(&queue) == [[0, 0, 20, 1], [3_000, 3_000, 20, 2], [3_020, 10, 20, 3]])
  }
}
