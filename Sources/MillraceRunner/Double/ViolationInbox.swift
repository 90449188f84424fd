internal import MillraceCore
internal import Synchronization

/// The violations that a double has reported and its node has not posted: how many, and the first of them.
///
/// The double writes on its network thread, the node reads on its worker.
final class ViolationInbox: Sendable {
  /// What the node posts.
  struct Report: Sendable, Equatable {
    /// The name of the first violation; nil: the double gave it none.
    var name: String?
    /// What was done, at most `longestText` bytes.
    var text: String
    /// The number of violations.
    var count = 1
  }

  /// Bytes of a text that are kept: enough for a sentence with figures.
  static let longestText = 400

  /// Bytes of the longest name; what is longer before a colon is part of the text.
  private static let longestName = 64
  /// How the lines of a double's report begin that are violations (`DoubleOptions.watch`).
  private static let mark = "! "

  private let report = Locked<Report?>(nil)
  private let isWaiting = Atomic<Bool>(false)
  private let waker: Waker

  init(_ waker: Waker) { self.waker = waker }

  /// True when there is something to post. One load.
  var hasReport: Bool { isWaiting.load(ordering: .acquiring) }

  /// Takes a line of the double's report: `! noKey: missing header`. Lines that are no violations are ignored. Any thread.
  func note(_ line: String) {
    guard line.hasPrefix(Self.mark) else { return }
    let violation = line.dropFirst(Self.mark.count)
    report.withLock { report in
      guard report != nil else {
        report = Self.report(of: violation)
        return
      }
      report?.count += 1
    }
    isWaiting.store(true, ordering: .releasing)
    waker.wake()
  }

  /// Removes what there is to post.
  func take() -> Report? {
    // First, so that a violation that comes meanwhile sets it again.
    isWaiting.store(false, ordering: .sequentiallyConsistent)
    return report.withLock { report in
      defer { report = nil }
      return report
    }
  }

  private static func report(of violation: Substring) -> Report {
    let name = violation.prefix { $0 != ":" }
    guard name.endIndex < violation.endIndex, !name.isEmpty, !name.contains(" "),
      name.utf8.count <= longestName
    else { return Report(name: nil, text: cut(violation)) }
    return Report(name: String(name), text: cut(violation[name.endIndex...].dropFirst().drop { $0 == " " }))
  }

  /// The beginning of a text, up to `longestText` bytes, without a part of a character.
  private static func cut(_ text: Substring) -> String {
    guard text.utf8.count > longestText else { return String(text) }
    var scalars = String.UnicodeScalarView()
    var count = 0
    for scalar in text.unicodeScalars {
      count += UTF8.width(scalar)
      if count > longestText { break }
      scalars.append(scalar)
    }
    return String(scalars)
  }
}
