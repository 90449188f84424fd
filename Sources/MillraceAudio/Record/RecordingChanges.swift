package import MillraceCore

/// Paths that a recorder was given while it runs, each with the position from which it applies: in samples, or in nanoseconds where
/// pictures are recorded.
///
/// A change waits until all media before its position has been written, but not beyond its deadline: an input that has stopped does not
/// keep a file open.
package struct RecordingChanges {
  private struct Change {
    /// Empty: record nothing.
    var path: String
    var position: Int64
    var deadline: Nanoseconds
  }

  /// Most waiting changes; another one replaces the newest.
  private static let most = 16
  private var waiting: [Change] = []

  package init() {}

  /// Changes the path at a position, or at once if nothing has arrived yet.
  package mutating func add(_ path: String, at position: Int64?, base: Int64?, deadline: Nanoseconds) {
    var place = Int64.min
    if let position, let base { place = max(position, base, waiting.last?.position ?? base) }
    if waiting.count == Self.most { waiting.removeLast() }
    waiting.append(Change(path: path, position: place, deadline: deadline))
  }

  /// Where the next change applies; nil if none waits.
  package var next: Int64? { waiting.first?.position }

  /// When the next change applies at the latest.
  package var deadline: Nanoseconds? { waiting.first?.deadline }

  /// True if the next change no longer waits for audio.
  package func isOverdue(at now: Nanoseconds) -> Bool { deadline.map { $0 <= now } ?? false }

  /// Takes the next change's path.
  package mutating func take() -> String? { waiting.isEmpty ? nil : waiting.removeFirst().path }

  /// Drops all changes.
  package mutating func removeAll() { waiting.removeAll(keepingCapacity: true) }
}
