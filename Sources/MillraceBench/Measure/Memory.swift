import Glibc

/// Returns free heap memory to the system: `malloc_trim(0)` (malloc_trim(3)), which Swift's Glibc module does not have.
func releaseFreeMemory() {
  guard let symbol = unsafe dlsym(nil, "malloc_trim") else { return }
  _ = unsafe unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
}

/// Resident memory of the process in units of 1,000 bytes (proc(5): the second number of statm, in pages).
func residentKilobytes() throws -> Double {
  guard let file = unsafe fopen("/proc/self/statm", "r") else {
    throw MeasurementProblem("cannot read /proc/self/statm")
  }
  defer { unsafe fclose(file) }
  var line = [CChar](repeating: 0, count: 128)
  unsafe fgets(&line, Int32(line.count), file)
  let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  guard let pages = text.split(separator: " ").dropFirst().first.flatMap({ Double($0) }) else {
    throw MeasurementProblem("/proc/self/statm cannot be parsed: \"\(text)\"")
  }
  return pages * Double(sysconf(Int32(_SC_PAGESIZE))) / 1_000
}
