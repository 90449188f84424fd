/// Suggests the name a user probably meant.
public enum Spelling {
  /// The candidate most similar to a name; nil when none is similar enough.
  ///
  /// In order of preference: a candidate that differs only in case, `_`, `-` and `.`; one whose part after the last dot is the name
  /// (`resample` for `audio.resample`); the one with the smallest edit distance (Damerau-Levenshtein, optimal string alignment: a
  /// letter inserted, deleted, replaced, or swapped with its neighbour). The distance is at most a third of the name's length,
  /// at least one and at most three. Ties go to the first in alphabetical order, so that the result does not depend on the order of
  /// the candidates. A candidate equal to the name is skipped.
  ///
  /// - Complexity: at most the product of both lengths for each candidate; names over 100 characters are not compared.
  public static func nearest(to name: String, among candidates: some Sequence<String>) -> String? {
    let wanted = letters(of: name)
    guard !wanted.isEmpty, wanted.count <= maxNameLength else { return nil }
    let maxDistance = min(max(wanted.count / 3, 1), 3)
    var best: (distance: Int, candidate: String)?
    for candidate in candidates where candidate != name {
      let limit = min(maxDistance, best?.distance ?? maxDistance)
      guard let distance = distance(from: wanted, to: candidate, limit: limit) else { continue }
      if let best, (best.distance, best.candidate) <= (distance, candidate) { continue }
      best = (distance, candidate)
    }
    return best?.candidate
  }

  /// The hint `did you mean "audio.resample"?`; nil when no candidate is similar enough.
  public static func hint(for name: String, among candidates: some Sequence<String>) -> String? {
    nearest(to: name, among: candidates).map(hint)
  }

  /// The hint for a candidate.
  static func hint(_ meant: String) -> String { "did you mean \(Problem.quoted(meant))?" }

  /// The longest name that is compared, in characters.
  private static let maxNameLength = 100

  /// 0 for the same letters, 1 for the same last part, otherwise the edit distance and 1. Nil when the edit distance is above the
  /// limit or as large as the name is long.
  private static func distance(from wanted: [Unicode.Scalar], to candidate: String, limit: Int) -> Int? {
    let letters = letters(of: candidate)
    if letters == wanted { return 0 }
    if let dot = candidate.lastIndex(of: "."),
      self.letters(of: candidate[candidate.index(after: dot)...]) == wanted
    {
      return 1
    }
    guard let edits = editDistance(from: wanted, to: letters, limit: limit), edits < wanted.count else {
      return nil
    }
    return edits + 1
  }

  private static func letters(of name: some StringProtocol) -> [Unicode.Scalar] {
    name.lowercased().unicodeScalars.filter { $0 != "_" && $0 != "-" && $0 != "." }
  }

  /// The edit distance between two words; nil when it is above the limit. Keeps the last three rows of the table.
  private static func editDistance(
    from first: [Unicode.Scalar], to second: [Unicode.Scalar], limit: Int
  ) -> Int? {
    guard abs(first.count - second.count) <= limit, second.count <= maxNameLength else { return nil }
    var beforeLast = [Int](repeating: 0, count: second.count + 1)
    var last = Array(0...second.count)
    var current = last
    for row in first.indices {
      current[0] = row + 1
      for column in second.indices {
        let replaced = last[column] + (first[row] == second[column] ? 0 : 1)
        var fewest = min(replaced, last[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
          fewest = min(fewest, beforeLast[column - 1] + 1)
        }
        current[column + 1] = fewest
      }
      // The minimum of a row never falls, except by a swap from the row before the last.
      if min(current.min()!, last.min()!) > limit { return nil }
      (beforeLast, last, current) = (last, current, beforeLast)
    }
    return last[second.count] <= limit ? last[second.count] : nil
  }
}
