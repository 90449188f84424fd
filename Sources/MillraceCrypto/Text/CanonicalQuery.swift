internal import MillraceJSON

/// The query of an address in the order that services sign: sorted by name, then by value, each by the bytes of its UTF-8.
///
/// It does not sign: whether `encoded` or `plain` is signed, and what with, differs between services.
public struct CanonicalQuery: Sendable {
  private let parameters: [(name: String, value: String)]

  /// Creates a query from parameters in any order, not percent-encoded. Repeated names are kept; values may be empty.
  public init(_ parameters: [(name: String, value: String)]) {
    self.parameters = parameters.sorted { first, second in
      // The order of String is another one: it treats canonically equivalent texts as equal.
      if Self.precedes(first.name, second.name) { return true }
      if Self.precedes(second.name, first.name) { return false }
      return Self.precedes(first.value, second.value)
    }
  }

  /// Percent-encoded names and values, as in an address: `a=1&b=x%2Fy`.
  public var encoded: String { joined(PercentEncoding.encode) }

  /// Names and values as given: `a=1&b=x/y`. Only for services that sign this form, since it is ambiguous: `&` and `=` in a value look like
  /// another parameter.
  public var plain: String { joined { $0 } }

  private func joined(_ form: (String) -> String) -> String {
    parameters.map { "\(form($0.name))=\(form($0.value))" }.joined(separator: "&")
  }

  private static func precedes(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
  }
}
