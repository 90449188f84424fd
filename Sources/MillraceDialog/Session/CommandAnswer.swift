package import MillraceCore

/// Answers commands on a worker, from their bytes: for a command that goes no further than its node. Does not allocate.
package enum CommandAnswer {
  /// Posts the answer to a command, by its `id`. False when it has none, or none that is valid.
  /// - Parameters:
  ///   - command: the command as JSON.
  ///   - problem: why it failed; nil: it is done.
  ///   - vendor: of the error.
  ///   - event: the index of `answer` in the node's contract.
  ///   - ports: of the node.
  package static func post(
    to command: Span<UInt8>, _ problem: StaticString?, vendor: StaticString, event: Int, _ ports: inout Ports
  ) -> Bool {
    let peek = EventPeek(command)
    guard !peek.contains("event") else { return false }
    switch peek.commandID() {
    case .none, .invalid: return false
    case .text(let range):
      let name: InlineArray<2, UInt8> = [UInt8(ascii: "i"), UInt8(ascii: "d")]
      let id = command.extracting(range)
      ports.post(event) {
        $0.field(name.span, json: id)
        write(problem, vendor, to: &$0)
      }
    case .number(let range):
      let id = command.extracting(range)
      ports.post(event) {
        $0.field("id", utf8: id)
        write(problem, vendor, to: &$0)
      }
    }
    return true
  }

  /// The members of an answer behind its id; those of a failure are the members of a `DialogError`.
  @_lifetime(writer: copy writer)
  private static func write(
    _ problem: StaticString?, _ vendor: StaticString, to writer: inout EventWriter
  ) {
    writer.field("ok", problem == nil)
    guard let problem else { return }
    writer.field("vendor", vendor)
    writer.field("category", "request")
    writer.field("reaction", "continue")
    writer.field("scope", "command")
    writer.field("text", problem)
  }
}
