import Foundation
import MillraceCore
import TestSystem
import Testing

@testable import MillraceDevices

/// Positions in the order one thread saw them, for another thread to read later.
private final class Positions: Sendable {
  private let list = Locked<[Int64]>([])
  var all: [Int64] { list.withLock { $0 } }
  func append(_ position: Int64) { list.withLock { $0.append(position) } }
}

/// The lines between a device's thread and a node, tested without either, and with both for the thread sanitizer.
@Suite("lines between nodes and devices")
struct LineTests {
  private static let frames = 160

  private func capture(capacityOf frames: Int = frames) -> CaptureLine {
    CaptureLine(rate: 16_000, frames: frames, frameBytes: 2, waker: .none)
  }

  /// Delivers this many frames, each sample encoding its index.
  private func give(_ line: CaptureLine, from position: Int, frames count: Int, at now: Nanoseconds) {
    let samples = (0..<count).map { Int16(truncatingIfNeeded: position + $0) }
    line.arrive(count, at: now)
    samples.withUnsafeBytes { line.take($0.baseAddress!, frames: count) }
  }

  /// Takes the samples of the oldest block.
  private func take(_ line: CaptureLine) -> (block: CaptureLine.Block, samples: [Int16])? {
    guard let block = line.front else { return nil }
    let samples = Array(
      UnsafeBufferPointer(start: line.bytes.assumingMemoryBound(to: Int16.self), count: line.frames))
    line.drop()
    return (block, samples)
  }

  @Test(
    "a node that does not keep up loses audio, which is counted, and later audio has the right position and time"
  )
  func overrun() {
    let line = capture()
    let packet: Nanoseconds = 10_000_000
    for index in 0..<50 {
      give(line, from: index * 160, frames: 160, at: Nanoseconds(index + 1) * packet)
    }
    #expect(line.takeOverrun() == 18 * 160)
    #expect(line.takeOverrun() == 0)
    var blocks: [CaptureLine.Block] = []
    while let next = take(line) { blocks.append(next.block) }
    #expect(blocks.map(\.position) == (0..<32).map { Int64($0) * 160 })
    #expect(blocks.allSatisfy { !$0.isDiscontinuous })
    give(line, from: 50 * 160, frames: 320, at: 52 * packet)
    let first = take(line)
    #expect(first?.block.position == 50 * 160 && first?.block.isDiscontinuous == true)
    // The loss adds no delay: the block's age matches its position.
    #expect(first.map { abs($0.block.time - 50 * packet) < 1_000 } == true, "\(first?.block.time ?? 0)")
    #expect(first?.samples.first == 8_000)
    let second = take(line)
    #expect(second?.block.position == 51 * 160 && second?.block.isDiscontinuous == false)
    #expect(take(line) == nil)
  }

  @Test("a fragment may start and end anywhere in a block")
  func fragments() {
    let line = capture()
    var position = 0
    for count in [1, 79, 200, 40, 333, 7, 140] {
      give(line, from: position, frames: count, at: Nanoseconds(position + count) * 62_500)
      position += count
    }
    var heard: [Int16] = []
    while let next = take(line) { heard += next.samples }
    #expect(heard == (0..<800).map { Int16($0) })
  }

  @Test("the time a device was gone is a gap in the stream, reported once")
  func away() {
    let line = capture()
    give(line, from: 0, frames: 250, at: 15_625_000)
    line.lose(at: 15_625_000)
    line.lose(at: 20_000_000)
    give(line, from: 0, frames: 160, at: 1_025_625_000)
    guard case .lost? = line.nextEvent() else {
      Issue.record("the loss was not reported")
      return
    }
    guard case .back(let time)? = line.nextEvent() else {
      Issue.record("the return was not reported")
      return
    }
    #expect(time == 1_010_000_000)
    #expect(line.nextEvent() == nil)
    #expect(take(line)?.block.position == 0)
    let back = take(line)
    // 1.01 s later, including the 160 frames that arrived.
    #expect(back?.block.position == 250 + 16_160 - 160 && back?.block.isDiscontinuous == true)
    #expect(back?.samples.first == 0)
  }

  @Test("blocks from a capture device reach the node complete and in order")
  func captureThreads() {
    let line = capture(capacityOf: 16)
    let rounds = 3_000
    let (seen, lost, faults) = (Positions(), Tally(), Tally())
    runTogether([
      {
        for index in 0..<rounds {
          // Odd sizes, so that blocks are filled in parts.
          let samples = (0..<16).map { Int16(truncatingIfNeeded: index * 16 + $0) }
          line.arrive(16, at: Nanoseconds(index + 1) * 1_000_000)
          samples.withUnsafeBytes {
            line.take($0.baseAddress!, frames: 5)
            line.take($0.baseAddress! + 10, frames: 11)
          }
          if index % 64 == 63 { sched_yield() }
        }
        line.end()
      },
      {
        while !line.isOver {
          _ = line.skew
          lost.add(line.takeOverrun())
          guard let block = line.front else { continue }
          let samples = UnsafeBufferPointer(start: line.bytes.assumingMemoryBound(to: Int16.self), count: 16)
          let expected = (0..<16).map { Int16(truncatingIfNeeded: Int(block.position) + $0) }
          if !samples.elementsEqual(expected) { faults.add() }
          seen.append(block.position)
          line.drop()
        }
        lost.add(line.takeOverrun())
      },
    ])
    let positions = seen.all
    #expect(faults.count == 0)
    #expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 })
    // After a loss of five frames blocks are no longer aligned to rounds, and a block may be incomplete at the end.
    #expect((0..<16).contains(rounds * 16 - positions.count * 16 - lost.count))
  }

  @Test("blocks from a node reach a playback device complete and at their positions")
  func playbackThreads() {
    let line = PlaybackLine(rate: 16_000, channels: 1, frames: 32, wakePipe: nil, waker: .none)
    let wanted = 20_000
    let (heard, faults) = (Tally(), Tally())
    runTogether([
      {
        var position: Int64 = 0
        var index = 0
        while heard.count < wanted {
          guard line.hasRoom, case .line(let clock) = line.clock.reading else { continue }
          // A reading comes from a single publication.
          if clock.time != Nanoseconds(clock.position) || clock.delay != clock.time {
            faults.add()
          }
          position = max(position, Int64(clock.position) + 48)
          let frames = 1 + index % 32
          for frame in 0..<frames { line.space[frame] = Float(position + Int64(frame) + 1) }
          line.publish(PlaybackLine.Block(epoch: 1, position: position, frames: frames))
          position += Int64(frames)
          index += 1
        }
      },
      {
        var reader = TimelineReader(line, epoch: 1)
        var samples = [Float](repeating: 0, count: 24)
        while heard.count < wanted {
          let position = reader.position
          line.publish(
            DeviceClock(epoch: 1, position: Double(position), time: position, rate: 1, delay: position),
            isFirst: position == 0, at: position)
          samples.withUnsafeMutableBufferPointer { reader.read(24, into: $0.baseAddress!) }
          for (index, sample) in samples.enumerated() where sample != 0 {
            if sample != Float(position + Int64(index) + 1) { faults.add() }
            heard.add()
          }
          // A device waits for its next period; this gives the node time, even on a single processor.
          sched_yield()
        }
      },
    ])
    #expect(faults.count == 0)
  }

  @Test("a late block is skipped up to the current position, one of another epoch completely")
  func tooLate() {
    let line = PlaybackLine(rate: 16_000, channels: 1, frames: 32, wakePipe: nil, waker: .none)
    var reader = TimelineReader(line, epoch: 2)
    func put(_ epoch: Int, _ position: Int64, _ value: Float) {
      for frame in 0..<32 { line.space[frame] = value + Float(frame) }
      line.publish(PlaybackLine.Block(epoch: epoch, position: position, frames: 32))
    }
    func read() -> [Float] {
      [Float](unsafeUninitializedCapacity: 24) { target, count in
        reader.read(24, into: target.baseAddress!)
        count = 24
      }
    }
    func ramp(_ first: Float, _ count: Int) -> [Float] { (0..<count).map { first + Float($0) } }
    func silence(_ count: Int) -> [Float] { [Float](repeating: 0, count: count) }
    #expect(read() == silence(24))
    put(1, 24, 500)
    put(2, 8, 100)
    put(2, 60, 200)
    #expect(line.takeMissed() == 0)
    // 16 frames of the block at 8 are past; the next one starts 20 frames after it ends.
    let first = ramp(116, 16) + silence(8)
    #expect(read() == first)
    #expect(line.takeMissed() == 16)
    let second = silence(12) + ramp(200, 12)
    #expect(read() == second)
    let third = ramp(212, 20) + silence(4)
    #expect(read() == third)
    #expect(line.front == nil)
    // The block played in two parts was not late; the one entirely in the past was.
    put(2, 0, 300)
    #expect(read() == silence(24))
    #expect(line.takeMissed() == 32 && line.front == nil)
  }

  @Test("a block that replaces others is what is heard, followed by its silence")
  func replaced() {
    let line = PlaybackLine(rate: 16_000, channels: 2, frames: 32, wakePipe: nil, waker: .none)
    var reader = TimelineReader(line, epoch: 1)
    func put(_ position: Int64, _ value: Float, silence: Int = 0, replaces: Bool = false) {
      for sample in 0..<64 { line.space[sample] = value + Float(sample) }
      line.publish(
        PlaybackLine.Block(epoch: 1, position: position, frames: 32, silence: silence, replaces: replaces))
    }
    func read(_ frames: Int) -> [Float] {
      [Float](unsafeUninitializedCapacity: 2 * frames) { target, count in
        reader.read(frames, into: target.baseAddress!)
        count = 2 * frames
      }
    }
    // Far enough for the line's memory to wrap around.
    for _ in 0..<40 { _ = read(30) }
    put(1_200, 1_000)
    put(1_232, 2_000)
    put(1_264, 3_000)
    let first = (0..<20).map { 1_000 + Float($0) }
    #expect(read(10) == first)
    // Frames 1,208 and 1,209 are past.
    put(1_208, 5_000, silence: 40, replaces: true)
    let second = (4..<64).map { 5_000 + Float($0) } + [Float](repeating: 0, count: 80)
    #expect(read(70) == second)
    let third = (32..<64).map { 3_000 + Float($0) }
    #expect(read(16) == third)
    #expect(line.takeMissed() == 0 && line.front == nil)
  }

  @Test("blocks too far ahead wait in the line, and none is lost")
  func farAhead() {
    let line = PlaybackLine(rate: 16_000, channels: 1, frames: 32, wakePipe: nil, waker: .none)
    var reader = TimelineReader(line, epoch: 1)
    var samples = [Float](repeating: 0, count: 32)
    var heard: [Float] = []
    var next: Int64 = 400
    while reader.position < 4_000 {
      while line.hasRoom {
        for frame in 0..<32 { line.space[frame] = Float(next + Int64(frame)) }
        line.publish(PlaybackLine.Block(epoch: 1, position: next, frames: 32))
        next += 32
      }
      samples.withUnsafeMutableBufferPointer { reader.read(32, into: $0.baseAddress!) }
      heard += samples
    }
    let sound = heard.dropFirst(400)
    let wanted = (400..<heard.count).map { Float($0) }
    #expect(Array(sound) == wanted)
    #expect(line.takeMissed() == 0)
  }
}
