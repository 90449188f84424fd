import Glibc
import MillraceGraph

/// The machine the figures were measured on, and how busy it was.
struct Machine {
  /// The processor's name.
  let model: String
  let processors: Int
  /// Runnable threads, averaged over the last minute (getloadavg(3)).
  let load: Double
  let build: String
  /// When, in UTC.
  let time: String

  /// This machine, now.
  static var current: Machine {
    var loads = [Double](repeating: 0, count: 3)
    unsafe getloadavg(&loads, 3)
    #if DEBUG
      let build = "DEBUG BUILD: figures are meaningless"
    #else
      let build = "release build"
    #endif
    return Machine(
      model: firstValue("model name", in: "/proc/cpuinfo") ?? "unknown processor",
      processors: max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), load: loads[0], build: build, time: now)
  }

  /// All of it in one line.
  var description: String {
    "\(model), \(processors) processors, load \(short(load)), \(build), \(time)"
  }

  /// The first line of JSON: what all figures after it have in common.
  var json: String {
    var writer = JSONWriter()
    writer.object { json in
      json.member("machine", model)
      json.member("processors", processors)
      json.member("load", load)
      json.member("build", build)
      json.member("time", time)
    }
    return writer.text
  }

  private static var now: String {
    var seconds = Glibc.time(nil)
    var parts = unsafe tm()
    unsafe gmtime_r(&seconds, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let count = unsafe strftime(&text, text.count, "%Y-%m-%d %H:%M UTC", &parts)
    return string(text.prefix(count))
  }

  private static func string(_ characters: some Sequence<CChar>) -> String {
    String(decoding: characters.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func firstValue(_ key: String, in path: String) -> String? {
    // Not `SourceFile`: files in /proc report a size of 0.
    guard let file = unsafe fopen(path, "r") else { return nil }
    defer { unsafe fclose(file) }
    var line = [CChar](repeating: 0, count: 512)
    while unsafe fgets(&line, Int32(line.count), file) != nil {
      let text = string(line.prefix { $0 != 0 })
      let parts = text.split(separator: ":", maxSplits: 1)
      if parts.count == 2, parts[0].split(whereSeparator: { $0 == "\t" }).first.map(String.init) == key {
        return String(parts[1].drop { $0 == " " }.prefix { $0 != "\n" })
      }
    }
    return nil
  }
}
