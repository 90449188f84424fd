import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("sound that is sent on")
struct SoundForwarderTests {
  private func sound(
    _ ssrc: UInt32, _ sequence: Int64, _ timestamp: Int64, at milliseconds: Int64 = 0, marker: Bool = false,
    restarts: Bool = false
  ) -> ReceivedSound {
    ReceivedSound(
      ssrc: ssrc, codec: .opus, sequence: sequence, timestamp: timestamp,
      arrival: .milliseconds(1_000 + milliseconds), capture: 0, payloadType: 111, marker: marker,
      restarts: restarts)
  }

  private func place(
    _ sequence: UInt16, _ timestamp: UInt32, marker: Bool = false, isNewest: Bool = true
  ) -> SoundForwarder.Place {
    SoundForwarder.Place(sequence: sequence, timestamp: timestamp, marker: marker, isNewest: isNewest)
  }

  @Test("the first packet has the first number, and those behind it have the steps of their source")
  func gaps() {
    var stream = SoundForwarder(sequence: 100, timestamp: 5_000, clockRate: 48_000)
    #expect(stream.next.sequence == 100 && stream.next.timestamp == 5_000)
    let first = stream.place(sound(1, 7, 96_000), samples: 960)
    let second = stream.place(sound(1, 8, 96_960, at: 20), samples: 960)
    // Two were lost, and one comes late.
    let third = stream.place(sound(1, 11, 99_840, at: 80, marker: true), samples: 960)
    let late = stream.place(sound(1, 10, 98_880, at: 81), samples: 960)
    #expect(first == place(100, 5_000, marker: true))
    #expect(second == place(101, 5_960))
    #expect(third == place(104, 8_840, marker: true))
    #expect(late == place(103, 7_880, isNewest: false))
    #expect(stream.next.sequence == 105 && stream.next.timestamp == 9_800)
    #expect(stream.latest?.timestamp == 8_840)
  }

  @Test("a packet is sent on once")
  func duplicates() {
    var stream = SoundForwarder(sequence: 1, timestamp: 0, clockRate: 48_000)
    var sent = 0
    for sequence in [Int64(5), 5, 6, 8, 7, 7, 8, 6, 5] {
      if stream.place(sound(1, sequence, sequence * 960), samples: 960) != nil { sent += 1 }
    }
    #expect(sent == 4)
  }

  @Test("numbers and timestamps wrap")
  func wraps() {
    var stream = SoundForwarder(sequence: 65_534, timestamp: .max - 959, clockRate: 48_000)
    var places: [SoundForwarder.Place?] = []
    for number in Int64(0)..<4 {
      places.append(
        stream.place(
          sound(1, 65_534 + number, 4_294_967_000 + 960 * number, at: 20 * number), samples: 960))
    }
    let expected: [SoundForwarder.Place?] = [
      place(65_534, UInt32.max - 959, marker: true), place(65_535, 0), place(0, 960), place(1, 1_920),
    ]
    #expect(places == expected)
  }

  /// A source that follows another.
  struct Change: Sendable {
    var milliseconds: Int64
    /// Of the packet before; 0: not known, which counts as 20 ms.
    var samples: Int
    var step: UInt32
  }

  static let changes = [
    Change(milliseconds: 20, samples: 960, step: 960),
    Change(milliseconds: 1_000, samples: 960, step: 48_000),
    Change(milliseconds: 5, samples: 960, step: 960), Change(milliseconds: 5, samples: 2_880, step: 2_880),
    Change(milliseconds: 5, samples: 0, step: 960),
    Change(milliseconds: 3_600_000, samples: 960, step: 172_800_000),
  ]

  @Test(
    "another source continues at the next number, after the time that has passed or the packet before",
    arguments: changes)
  func sources(_ change: Change) {
    var stream = SoundForwarder(sequence: 10, timestamp: 0, clockRate: 48_000)
    _ = stream.place(sound(1, 60_000, 7), samples: change.samples)
    let other = stream.place(sound(2, 3, 99, at: change.milliseconds), samples: 960)
    let next = stream.place(sound(2, 4, 1_059, at: change.milliseconds + 20), samples: 960)
    // What is older than its first packet would have a number of the source before it.
    let older = stream.place(sound(2, 2, 99 - 960, at: change.milliseconds + 21), samples: 960)
    #expect(other == place(11, change.step, marker: true))
    #expect(next == place(12, change.step + 960))
    #expect(older == nil)
  }

  @Test("a source that begins again, or leaves out more than a loss, continues at the next number")
  func restarts() {
    var stream = SoundForwarder(sequence: 10, timestamp: 0, clockRate: 48_000)
    _ = stream.place(sound(1, 1_000, 0), samples: 960)
    let again = stream.place(sound(1, 5, 777, at: 40, restarts: true), samples: 960)
    let kept = stream.place(sound(1, 5 + 512, 777 + 512 * 960, at: 10_280), samples: 960)
    let pause = stream.place(sound(1, 5 + 512 + 513, 40, at: 20_280), samples: 960)
    let back = stream.place(sound(1, 1, 50, at: 20_300), samples: 960)
    #expect(again == place(11, 1_920, marker: true))
    #expect(kept == place(523, 1_920 + 512 * 960))
    #expect(pause == place(524, 1_920 + 512 * 960 + 480_000, marker: true))
    #expect(back == place(525, 1_920 + 512 * 960 + 480_960, marker: true))
  }

  @Test("a pause of days, and times that run backwards, do no harm")
  func times() {
    var stream = SoundForwarder(sequence: 10, timestamp: 0, clockRate: 48_000)
    _ = stream.place(sound(1, 1, 0), samples: 960)
    let days = stream.place(sound(2, 1, 0, at: 100 * 86_400_000), samples: 960)
    let back = stream.place(sound(3, 1, 0, at: 5), samples: 960)
    let extreme = stream.place(sound(4, .max, .min, at: 10), samples: .max)
    #expect(days?.sequence == 11 && back?.sequence == 12 && extreme?.sequence == 13)
  }

  @Test("the least step is 20 ms of the codec's clock")
  func clock() {
    var stream = SoundForwarder(sequence: 0, timestamp: 0, clockRate: 8_000)
    _ = stream.place(sound(1, 1, 0), samples: 0)
    let other = stream.place(sound(2, 1, 0, at: 1), samples: 0)
    #expect(other == place(1, 160, marker: true))
  }
}
