import MillraceGraph

/// Feeds any bytes to the cutter of control lines, and each line to the reader of commands. The first byte says how the bytes are
/// cut.
///
/// Neither may crash. Lines are the same however the bytes come, and lose none of them. A refusal has words, and its column lies in
/// the line. What is accepted keeps to its bounds, and is the same command when the line is written anew.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzControl(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let content = Array(bytes.dropFirst())
  let lines = commandLines(of: content, cut: max(1, content.count))
  if commandLines(of: content, cut: 1 + Int(first)) != lines { fatalError("lines depend on the pieces") }
  var parts = content.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
  if parts.last?.isEmpty == true { parts.removeLast() }
  if lines != parts.map({ .whole($0) }) { fatalError("other lines: \(lines)") }
  for part in parts { checkCommand(part) }
  return 0
}

private func commandLines(of bytes: [UInt8], cut: Int) -> [LineSplitter.Line] {
  var splitter = LineSplitter()
  var result: [LineSplitter.Line] = []
  for start in stride(from: 0, to: bytes.count, by: cut) {
    result += splitter.add(bytes[start..<min(start + cut, bytes.count)])
  }
  if let last = splitter.end() { result.append(last) }
  if splitter.end() != nil { fatalError("a line after the last") }
  return result
}

private func checkCommand(_ bytes: [UInt8]) {
  var line = ControlLine(bytes)
  do throws(ControlRefusal) {
    let command = try line.command()
    if let instance = command.instance, instance < 1 { fatalError("instance \(instance)") }
    if let time = command.time, time < 0 { fatalError("at \(time)") }
    var again = ControlLine(written(bytes))
    if "\(try again.command())" != "\(command)" { fatalError("another command: \(command)") }
  } catch {
    if error.text.isEmpty { fatalError("a refusal without words") }
    if let column = error.column, !(1...(bytes.count + 1)).contains(column) {
      fatalError("column \(column) of \(bytes.count) bytes: \(error.text)")
    }
  }
}

private func written(_ bytes: [UInt8]) -> [UInt8] {
  var json = JSONWriter(pretty: false)
  do throws(Problem) {
    json.value(try JSONDocument.scan(SourceFile(name: "control", bytes: bytes)).root)
  } catch {
    fatalError("a command that is no JSON: \(error)")
  }
  return json.bytes
}
