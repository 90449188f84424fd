import MillraceCore
import TestSystem

/// A directory for one test's files, removed after the test.
struct Scratch {
  private let place = TemporaryFolder()

  var folder: String { place.path }

  func path(_ name: String) -> String { place.file(name) }

  func text(_ name: String) -> String { String(decoding: contents(path(name)), as: UTF8.self) }

  func write(_ text: String, to name: String) { put(text.utf8, at: path(name)) }
}

let lines = OutputShape(.text, packetDuration: nil, packetBytes: 256)
let events = OutputShape(.event, packetDuration: nil, packetBytes: 1024)
let speech = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)
