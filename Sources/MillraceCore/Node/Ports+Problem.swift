extension Ports {
  /// Posts an event that says in `text` what is wrong and what to do, and in another field what that concerns, such as a path.
  ///
  /// - Parameters:
  ///   - event: its index in the contract.
  ///   - field: the name of the other field.
  package mutating func post(
    _ problem: NodeProblem, as event: Int, naming field: StaticString, _ value: String
  ) {
    let (text, value) = (Array(problem.description.utf8), Array(value.utf8))
    post(event) { event in
      event.field("text", utf8: text.span)
      event.field(field, utf8: value.span)
    }
  }
}
