import Foundation
import MillraceCore

/// A folder for one test's files, gone with the test.
final class Scratch {
  let folder: String

  init() {
    folder = NSTemporaryDirectory() + "millrace-flow-\(UUID().uuidString)"
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch {
      fatalError("no scratch folder for a test: \(error)")
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func path(_ name: String) -> String { folder + "/" + name }

  func text(_ name: String) -> String {
    FileManager.default.contents(atPath: path(name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  func write(_ text: String, to name: String) {
    FileManager.default.createFile(atPath: path(name), contents: Data(text.utf8))
  }
}

let lines = OutputShape(.text, packetDuration: nil, packetBytes: 256)
let events = OutputShape(.event, packetDuration: nil, packetBytes: 1024)
let speech = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)
