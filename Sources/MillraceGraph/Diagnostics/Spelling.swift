/// Finds the name a user probably meant.
public enum Spelling {
  /// The candidate spelled most like a name, or nil when none comes near.
  ///
  /// Nearest first: the same letters apart from case, `_`, `-` and `.`; then a candidate whose part after the last dot is the
  /// name (`resample` for `audio.resample`); then the fewest slips, where a slip is a letter too many, too few, wrong,
  /// or swapped with its neighbour (Damerau-Levenshtein, optimal string alignment). One slip is allowed for every three
  /// characters, at least one and at most three. Between equals the first in alphabetical order wins, so that the answer
  /// does not depend on the order of the candidates. A candidate that equals the name is not offered.
  ///
  /// - Complexity: at most the product of both lengths for each candidate; names over 100 characters are never compared.
  public static func nearest(to name: String, among candidates: some Sequence<String>) -> String? {
    let wanted = letters(of: name)
    guard !wanted.isEmpty, wanted.count <= longestName else { return nil }
    let allowed = min(max(wanted.count / 3, 1), 3)
    var best: (distance: Int, candidate: String)?
    for candidate in candidates where candidate != name {
      let limit = min(allowed, best?.distance ?? allowed)
      guard let distance = distance(from: wanted, to: candidate, limit: limit) else { continue }
      if let best, (best.distance, best.candidate) <= (distance, candidate) { continue }
      best = (distance, candidate)
    }
    return best?.candidate
  }

  /// The words `did you mean "audio.resample"?`, or nil when nothing comes near.
  public static func hint(for name: String, among candidates: some Sequence<String>) -> String? {
    nearest(to: name, among: candidates).map(hint)
  }

  /// The words for a name that was found.
  static func hint(_ meant: String) -> String { "did you mean \(Problem.quoted(meant))?" }

  /// The longest name that is compared, in characters; no name of the trade is longer.
  private static let longestName = 100

  /// 0 for the same letters, 1 for the same last part, else 1 more than the slips. Nil above the limit of slips, and when
  /// there are as many slips as letters: such names have nothing in common.
  private static func distance(from wanted: [Unicode.Scalar], to candidate: String, limit: Int) -> Int? {
    let letters = letters(of: candidate)
    if letters == wanted { return 0 }
    if let dot = candidate.lastIndex(of: "."),
      self.letters(of: candidate[candidate.index(after: dot)...]) == wanted
    {
      return 1
    }
    guard let slips = slips(from: wanted, to: letters, limit: limit), slips < wanted.count else { return nil }
    return slips + 1
  }

  private static func letters(of name: some StringProtocol) -> [Unicode.Scalar] {
    name.lowercased().unicodeScalars.filter { $0 != "_" && $0 != "-" && $0 != "." }
  }

  /// The number of slips between two words, or nil when it is above the limit. Keeps the last three rows of the table.
  private static func slips(from first: [Unicode.Scalar], to second: [Unicode.Scalar], limit: Int) -> Int? {
    guard abs(first.count - second.count) <= limit, second.count <= longestName else { return nil }
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
      // Rows never get smaller minima again, except through the row before by a swap.
      if min(current.min()!, last.min()!) > limit { return nil }
      (beforeLast, last, current) = (last, current, beforeLast)
    }
    return last[second.count] <= limit ? last[second.count] : nil
  }
}
