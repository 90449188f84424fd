internal import Synchronization

/// The secrets of one graph: those it started with and those added while it runs. A part of a running graph has those of the graph, too.
///
/// Additions are pushed to the front of a linked list and freed only with the store, so readers need neither a lock nor a reference
/// count.
@safe
final class SecretStore: @unchecked Sendable {
  /// The initial secrets, the longest first.
  private let first: [SecretPattern]
  /// For a part of a running graph: the store of that graph, which gets all additions.
  private let outer: SecretStore?
  /// The address of the newest link, which is retained; 0: none.
  private let newest = Atomic<UInt>(0)
  /// The texts of the newest links, the oldest first: these are not added again.
  private let recent = Mutex<[String]>([])

  /// Additions that are searched: a key renewed every hour is out of use long before as many others were added.
  static let longestChain = 256

  private final class Link {
    let patterns: [SecretPattern]
    let older: UInt
    init(_ patterns: [SecretPattern], older: UInt) {
      self.patterns = patterns
      self.older = older
    }
  }

  init(_ patterns: [SecretPattern], within outer: SecretStore? = nil) {
    first = patterns
    self.outer = outer
  }

  deinit {
    var address = newest.load(ordering: .acquiring)
    while let link = unsafe Self.link(address) {
      address = unsafe link._withUnsafeGuaranteedRef { $0.older }
      unsafe link.release()
    }
  }

  var isEmpty: Bool {
    first.isEmpty && newest.load(ordering: .acquiring) == 0 && outer?.isEmpty ?? true
  }

  /// Adds the texts that are not searched yet. Any thread.
  /// - Parameter patternsOf: returns the patterns of texts, the longest first.
  func add(_ texts: Set<String>, patternsOf: (Set<String>) -> [SecretPattern]) {
    if let outer { return outer.add(texts, patternsOf: patternsOf) }
    // One writer at a time.
    recent.withLock { recent in
      let unknown = texts.subtracting(recent)
      let patterns = patternsOf(unknown)
      guard !patterns.isEmpty else { return }
      // A link has at least one text, so these texts are within the part of the list that is searched.
      recent = (recent + unknown).suffix(Self.longestChain)
      let link = Link(patterns, older: newest.load(ordering: .acquiring))
      newest.store(unsafe UInt(bitPattern: Unmanaged.passRetained(link).toOpaque()), ordering: .releasing)
    }
  }

  /// Length in bytes of the secret at an index of a text; nil when there is none.
  func length(at index: Int, _ text: Span<UInt8>, _ place: SecretPattern.Place) -> Int? {
    var longest = Self.length(first, at: index, text, place)
    var address = newest.load(ordering: .acquiring)
    var count = 0
    while count < Self.longestChain, let link = unsafe Self.link(address) {
      unsafe link._withUnsafeGuaranteedRef { link in
        if let length = Self.length(link.patterns, at: index, text, place), length > longest ?? 0 {
          longest = length
        }
        address = link.older
      }
      count += 1
    }
    if let length = outer?.length(at: index, text, place), length > longest ?? 0 { longest = length }
    return longest
  }

  private static func length(
    _ patterns: [SecretPattern], at index: Int, _ text: Span<UInt8>, _ place: SecretPattern.Place
  ) -> Int? {
    var longest: Int?
    for pattern in patterns {
      if let length = pattern.length(at: index, text, place), length > longest ?? 0 { longest = length }
    }
    return longest
  }

  private static func link(_ address: UInt) -> Unmanaged<Link>? {
    unsafe UnsafeRawPointer(bitPattern: address).map { unsafe Unmanaged.fromOpaque($0) }
  }
}
