internal import MillraceCore

/// How many bytes a picture may have, and where they are counted.
package struct ByteBudget: Sendable, Hashable {
  /// What has to stay under the limit.
  package enum Count: String, Sendable, CaseIterable {
    /// The JPEG file.
    case jpeg
    /// The JPEG as base64 text: four characters for every three bytes begun (RFC 4648).
    case base64
  }

  /// The limit; a picture stays strictly under it.
  package let maxBytes: Int
  package let count: Count

  package init(maxBytes: Int, count: Count = .jpeg) {
    self.maxBytes = maxBytes
    self.count = count
  }

  /// Bytes of the largest JPEG that is under the limit: one less than it, or what fills whole groups of four characters.
  package var largestJPEG: Int {
    switch count {
    case .jpeg: maxBytes - 1
    case .base64: (maxBytes - 1) / 4 * 3
    }
  }
}
