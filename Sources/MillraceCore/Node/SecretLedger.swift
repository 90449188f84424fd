internal import Synchronization

/// The secrets of one graph: those it began with, and those that came while it ran.
///
/// What is added is chained in front and never taken away before the ledger itself goes, so that readers need neither lock nor
/// reference count.
@safe
final class SecretLedger: @unchecked Sendable {
  /// Those it began with, the longest first.
  private let first: [SecretSpelling]
  /// The address of the newest link of the chain, with a reference to it; 0: there is none.
  private let newest = Atomic<UInt>(0)
  /// The texts of the chain's newest links, the oldest first: what is among them need not be added again.
  private let recent = Mutex<[String]>([])

  /// Additions that are looked for: a key that is renewed every hour is out of use long before so many others have come.
  static let longestChain = 256

  private final class Link {
    let spellings: [SecretSpelling]
    let older: UInt
    init(_ spellings: [SecretSpelling], older: UInt) {
      self.spellings = spellings
      self.older = older
    }
  }

  init(_ spellings: [SecretSpelling]) { first = spellings }

  deinit {
    var address = newest.load(ordering: .acquiring)
    while let link = unsafe Self.link(address) {
      address = unsafe link._withUnsafeGuaranteedRef { $0.older }
      unsafe link.release()
    }
  }

  var isEmpty: Bool { first.isEmpty && newest.load(ordering: .acquiring) == 0 }

  /// Adds those texts that are not looked for yet. Any thread.
  /// - Parameter spelled: how they may be written, the longest first.
  func add(_ texts: Set<String>, spelled: (Set<String>) -> [SecretSpelling]) {
    // One writer at a time.
    recent.withLock { recent in
      let unknown = texts.subtracting(recent)
      let spellings = spelled(unknown)
      guard !spellings.isEmpty else { return }
      // A link holds one text at least, so that these are in the part of the chain that is looked at.
      recent = (recent + unknown).suffix(Self.longestChain)
      let link = Link(spellings, older: newest.load(ordering: .acquiring))
      newest.store(unsafe UInt(bitPattern: Unmanaged.passRetained(link).toOpaque()), ordering: .releasing)
    }
  }

  /// Bytes of a secret that stands at a place of a text; nil: none does.
  func length(at index: Int, _ text: Span<UInt8>, _ place: SecretSpelling.Place) -> Int? {
    var longest = Self.length(first, at: index, text, place)
    var address = newest.load(ordering: .acquiring)
    var count = 0
    while count < Self.longestChain, let link = unsafe Self.link(address) {
      unsafe link._withUnsafeGuaranteedRef { link in
        if let length = Self.length(link.spellings, at: index, text, place), length > longest ?? 0 {
          longest = length
        }
        address = link.older
      }
      count += 1
    }
    return longest
  }

  private static func length(
    _ spellings: [SecretSpelling], at index: Int, _ text: Span<UInt8>, _ place: SecretSpelling.Place
  ) -> Int? {
    var longest: Int?
    for spelling in spellings {
      if let length = spelling.length(at: index, text, place), length > longest ?? 0 { longest = length }
    }
    return longest
  }

  private static func link(_ address: UInt) -> Unmanaged<Link>? {
    unsafe UnsafeRawPointer(bitPattern: address).map { unsafe Unmanaged.fromOpaque($0) }
  }
}
