internal import MillraceCore

/// The size limit of a picture, and what it applies to.
package struct ByteBudget: Sendable, Hashable {
  /// What the limit applies to.
  package enum Count: String, Sendable, CaseIterable {
    /// The JPEG file.
    case jpeg
    /// The JPEG as base64 text: four characters for every three bytes begun (RFC 4648).
    case base64
  }

  /// The limit; a picture is strictly smaller.
  package let maxBytes: Int
  package let count: Count

  package init(maxBytes: Int, count: Count = .jpeg) {
    self.maxBytes = maxBytes
    self.count = count
  }

  /// Size of the largest JPEG under the limit: one byte less, or what fills whole groups of four base64 characters.
  package var largestJPEG: Int {
    switch count {
    case .jpeg: maxBytes - 1
    case .base64: (maxBytes - 1) / 4 * 3
    }
  }
}
