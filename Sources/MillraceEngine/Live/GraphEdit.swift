public import MillraceCore
public import MillraceGraph

/// A change of the links of a running graph, made in one step: either all of it or nothing.
///
/// ```swift
/// try run.edit { edit in
///   edit.unlink("mic -> enc")
///   edit.link("mic -> fx/gain")
///   edit.link("fx/gain -> enc")
/// }
/// ```
///
/// Ends are written as in a graph file, `node` or `node.port`; nodes of a part have the name of the part in front: `fx/gain.in`. The
/// name of a part alone means its only node.
public struct GraphEdit: Sendable {
  enum Step: Sendable {
    case link(String, LinkCapacity?, LinkPolicy?)
    case unlink(String)
    case relink(String, LinkCapacity?, LinkPolicy?)
  }
  private(set) var steps: [Step] = []

  /// A change without steps.
  public init() {}

  /// Links an output to an input. The input must have been linked when its node was made, and nothing may feed it now.
  /// - Parameters:
  ///   - link: `from -> to`.
  ///   - capacity: how much it holds; nil: by the rules of graph files.
  ///   - whenFull: what happens when it is full; nil: by the rules of graph files.
  public mutating func link(_ link: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil) {
    steps.append(.link(link, capacity, whenFull))
  }

  /// Takes a link away. What is in it is still read; then the input waits for another link. It ends only with its graph.
  public mutating func unlink(_ link: String) { steps.append(.unlink(link)) }

  /// Links an output to an input in place of the link that feeds the input now, if there is one. What is in the old link is read
  /// first.
  public mutating func relink(_ link: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil) {
    steps.append(.relink(link, capacity, whenFull))
  }

  /// The two ends of `from -> to`.
  static func ends(of link: String) throws(EditProblem) -> (from: String, to: String) {
    let parts = link.split(separator: "->", omittingEmptySubsequences: false).map(trimmed)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
      throw EditProblem(
        .badLink, "\(Problem.quoted(link)) is no link between two ports", cure: "write \"from -> to\"")
    }
    return (parts[0], parts[1])
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}

extension GraphRun {
  /// Changes links of the running graph and its parts in one step: no packet is lost or doubled, and links that stay do not notice.
  ///
  /// All links that one output gains and loses change between two packets: each packet goes through the old links or through the new
  /// ones. An input reads what its old link still holds before it reads the new one. The nodes of the run go on meanwhile; the change
  /// is there when their workers have begun their next turns. Any thread; some microseconds a link, on the control side. A new link
  /// copies its packets into memory of its own, which the engine's memory limit counts.
  /// - Throws: what is wrong with the first step that is; nothing has changed then.
  public func edit(_ body: (inout GraphEdit) -> Void) throws(EditProblem) {
    var edit = GraphEdit()
    body(&edit)
    try engine.edit { (editor) throws(EditProblem) in
      try editor.take(edit.steps, in: self)
      try editor.commit()
    }
  }

  /// Feeds an input from another output than now: `relink("mic2 -> enc")`. As `edit` with this one step.
  public func relink(_ link: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil)
    throws(EditProblem)
  {
    try edit { $0.relink(link, capacity: capacity, whenFull: whenFull) }
  }

  /// Links made while the graph runs that lead to a node of this run, as `RunReport.links` has those of the plan.
  public var liveLinks: [LinkReport] {
    engine.topology.withLock { $0.links }.filter { $0.to.run == id }.map(\.report)
  }
}

extension Engine {
  /// Links an output of a run to an input of another run of this engine: a conference of graphs.
  ///
  /// What passes belongs to no reply of the reading run, so an interruption there does not touch it; times and positions are translated
  /// from the graph time of one run to that of the other. The link ends with either run, and neither harms the other by ending: the
  /// input ends when the writing run does, and a writer never waits for a run that has ended. When the reading run drains, its links
  /// from other runs end first.
  /// - Parameters:
  ///   - writer: the run that packets come from; it has been started.
  ///   - output: `node` or `node.port`; nodes of parts as in `GraphEdit`.
  ///   - reader: the run that packets go to; it has been started.
  ///   - input: likewise. It must have been linked when its node was made, and nothing may feed it now.
  ///   - capacity: how much the link holds; nil: by the rules of graph files.
  ///   - whenFull: what happens when it is full; nil: by the rules of graph files. A writer waits for a slow reader only where this is
  ///     `block`.
  ///   - replacing: true: in place of the link that feeds the input now, if there is one; what that still holds is read first.
  public func connect(
    _ writer: GraphRun, _ output: String, to reader: GraphRun, _ input: String, capacity: LinkCapacity? = nil,
    whenFull: LinkPolicy? = nil, replacing: Bool = false
  ) throws(EditProblem) {
    try core.edit { (editor) throws(EditProblem) in
      let from = try editor.output(output, in: writer)
      let to = try editor.input(input, in: reader)
      if replacing { editor.free(to) }
      try editor.link(from, to, capacity, whenFull)
      try editor.commit()
    }
  }

  /// Takes a link between two runs away: what is in it is still read, then the input waits for another link.
  public func disconnect(_ writer: GraphRun, _ output: String, from reader: GraphRun, _ input: String)
    throws(EditProblem)
  {
    try core.edit { (editor) throws(EditProblem) in
      let from = try editor.output(output, in: writer)
      let to = try editor.input(input, in: reader)
      try editor.unlink(from, to)
      try editor.commit()
    }
  }
}
