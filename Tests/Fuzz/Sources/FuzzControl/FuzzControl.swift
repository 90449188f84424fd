import MillraceGraph

/// Feeds arbitrary bytes to the splitter of control lines, and each line to the command parser. The first byte selects the chunk size.
///
/// Neither may crash. The lines do not depend on the chunks and contain every byte. An error has a message, and its column lies in
/// the line. An accepted command is within its bounds, and is the same after the line is serialised again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzControl(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let content = Array(bytes.dropFirst())
  let lines = commandLines(of: content, cut: max(1, content.count))
  if commandLines(of: content, cut: 1 + Int(first)) != lines { fatalError("lines depend on the chunks") }
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
  do throws(ControlError) {
    let command = try line.command()
    if let instance = command.instance, instance < 1 { fatalError("instance \(instance)") }
    if let time = command.time, time < 0 { fatalError("at \(time)") }
    var again = ControlLine(written(bytes))
    if "\(try again.command())" != "\(command)" { fatalError("another command: \(command)") }
  } catch {
    if error.text.isEmpty { fatalError("an error without a message") }
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
    fatalError("a command that is not JSON: \(error)")
  }
  return json.bytes
}
