internal import Glibc
internal import MillraceGraph

/// Finds the first line in which two texts differ.
struct LineDifference {
  let golden: [String]
  let now: [String]
  /// Largest tolerated difference of numbers in JSON lines.
  let tolerance: Double

  /// Most characters of a line that a message quotes.
  private static let shownCharacters = 200

  /// The lines of a file; nil when it cannot be read or is not text.
  static func lines(of path: String) -> [String]? {
    guard let file = try? SourceFile.read(path: path), !file.bytes.contains(0),
      String(validating: file.bytes, as: UTF8.self) != nil
    else { return nil }
    let lines = file.bytes.split(separator: 10, omittingEmptySubsequences: false)
    return (lines.last?.isEmpty == true ? lines.dropLast() : lines).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// Describes the difference; nil when there is none.
  /// - Parameter noun: what a line represents.
  func text(_ noun: String) -> String? {
    let common = zip(golden, now).enumerated().first { !isSame($0.element.0, $0.element.1) }
    if let (index, (before, after)) = common {
      return "\(noun) \(index + 1) is \(shown(after)), golden \(shown(before))\(counts(noun))"
    }
    if now.count > golden.count {
      return "\(noun) \(golden.count + 1) is new: \(shown(now[golden.count]))\(counts(noun))"
    }
    guard golden.count > now.count else { return nil }
    return "\(noun) \(now.count + 1) is missing, golden \(shown(golden[now.count]))\(counts(noun))"
  }

  private func counts(_ noun: String) -> String {
    golden.count == now.count ? "" : "; \(Figures.counted(now.count, noun)), golden \(golden.count)"
  }

  private func shown(_ line: String) -> String {
    line.count > Self.shownCharacters ? line.prefix(Self.shownCharacters) + "…" : line
  }

  private func isSame(_ golden: String, _ now: String) -> Bool {
    if golden == now { return true }
    guard tolerance > 0, let before = Self.json(golden), let after = Self.json(now) else { return false }
    return isNear(before, after)
  }

  private static func json(_ line: String) -> JSONNode? {
    try? JSONDocument.scan(SourceFile(name: "line", text: line)).root
  }

  /// Like `hasSameContent`, but with a tolerance for numbers.
  private func isNear(_ golden: JSONNode, _ now: JSONNode) -> Bool {
    switch (golden.value, now.value) {
    case (.number(let before), .number(let after)):
      before.literal == after.literal || abs(before.double - after.double) <= tolerance
    case (.array(let before), .array(let after)):
      before.count == after.count && zip(before, after).allSatisfy { isNear($0, $1) }
    case (.object(let before), .object(let after)):
      before.members.count == after.members.count
        && zip(before.members, after.members).allSatisfy { $0.key == $1.key && isNear($0.value, $1.value) }
    default: golden.hasSameContent(as: now)
    }
  }
}
