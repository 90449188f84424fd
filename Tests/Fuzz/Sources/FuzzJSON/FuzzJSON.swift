import MillraceGraph

/// Feeds arbitrary bytes to the JSON scanner.
///
/// It must never crash. An error must have a message and a position inside the input, in every form in which problems are shown.
/// Accepted input must read back as the same tree after it was written compact and pretty. Every number must be finite, and its
/// integer, if any, must equal its double.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  let source = SourceFile(name: "input.json", bytes: bytes)
  do throws(Problem) {
    let document = try JSONDocument.scan(source)
    checkRoundTrip(of: document.root)
    checkPlaces(in: document.root, of: document)
  } catch {
    checkRefusal(error, count: count)
  }
  return 0
}

private func checkRoundTrip(of root: JSONNode) {
  for pretty in [false, true] {
    var json = JSONWriter(pretty: pretty)
    json.value(root)
    do throws(Problem) {
      let again = try JSONDocument.scan(SourceFile(name: "written.json", bytes: json.bytes)).root
      if !again.hasSameContent(as: root) { fatalError("reads back differently: \(json.text)") }
    } catch {
      fatalError("does not read back: \(error)")
    }
  }
}

/// Every value lies inside the source, and inside the value that holds it.
private func checkPlaces(in node: JSONNode, of document: JSONDocument) {
  func check(_ child: Range<Int>) {
    if child.lowerBound <= node.range.lowerBound || child.upperBound >= node.range.upperBound {
      fatalError("\(child) does not lie inside \(node.range)")
    }
  }
  switch node.value {
  case .number(let number): checkNumber(number)
  case .array(let items):
    for item in items {
      check(item.range)
      checkPlaces(in: item, of: document)
    }
  case .object(let object):
    for member in object.members {
      check(member.range)
      if object[member.key]?.range != member.range { fatalError("key \(member.key) finds another member") }
      if document.path(to: member.keyRange.lowerBound).steps.last != .key(member.key) {
        fatalError("the path to the key \(member.key) ends elsewhere")
      }
      checkPlaces(in: member.value, of: document)
    }
  case .string, .bool, .null: break
  }
}

private func checkNumber(_ number: JSONNumber) {
  if !number.double.isFinite { fatalError("\(number) is not finite") }
  if let integer = number.integer, Double(integer) != number.double {
    fatalError("\(number) is \(integer) as an integer and \(number.double) as a double")
  }
}

private func checkRefusal(_ problem: Problem, count: Int) {
  let isInside = problem.range.lowerBound >= 0 && problem.range.upperBound <= count
  if !isInside || problem.text.isEmpty {
    fatalError("an error without a message or outside the input: \(problem)")
  }
  let line = problem.description
  if line.unicodeScalars.contains(where: { $0.value < 0x20 }) {
    fatalError("an error with a control character")
  }
  if problem.excerpt.split(separator: "\n").count > 3 { fatalError("an excerpt of more than three lines") }
  let json = Problems([problem]).json()
  do throws(Problem) {
    _ = try JSONDocument.scan(SourceFile(name: "problems.json", text: json))
  } catch {
    fatalError("an error that is not JSON: \(error)")
  }
}
