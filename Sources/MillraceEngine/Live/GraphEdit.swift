public import MillraceCore
public import MillraceGraph

/// A change of the links of a running graph, applied atomically.
///
/// ```swift
/// try run.edit { edit in
///   edit.unlink("mic -> enc")
///   edit.link("mic -> fx/gain")
///   edit.link("fx/gain -> enc")
/// }
/// ```
///
/// Ends are written as in a graph file, `node` or `node.port`; nodes of a part are prefixed with its name: `fx/gain.in`. The name
/// of a part alone means its only node.
public struct GraphEdit: Sendable {
  enum Step: Sendable {
    case link(String, LinkCapacity?, LinkPolicy?)
    case unlink(String)
    case relink(String, LinkCapacity?, LinkPolicy?)
  }
  private(set) var steps: [Step] = []

  /// An empty change.
  public init() {}

  /// Links an output to an input. The input must have been linked when its node was created, and must have no link now.
  /// - Parameters:
  ///   - link: `from -> to`.
  ///   - capacity: how much it holds; nil: the default of graph files.
  ///   - whenFull: its policy when full; nil: the default of graph files.
  public mutating func link(_ link: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil) {
    steps.append(.link(link, capacity, whenFull))
  }

  /// Removes a link. Its queued packets are still read; then the input waits for another link, and ends only with its graph.
  public mutating func unlink(_ link: String) { steps.append(.unlink(link)) }

  /// Links an output to an input, replacing the input's present link, if any. The packets queued in the old link are read first.
  public mutating func relink(_ link: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil) {
    steps.append(.relink(link, capacity, whenFull))
  }

  /// The two ends of `from -> to`.
  static func ends(of link: String) throws(EditProblem) -> (from: String, to: String) {
    let parts = link.split(separator: "->", omittingEmptySubsequences: false).map(trimmed)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
      throw EditProblem(
        .badLink, "\(Problem.quoted(link)) is not a link between two ports", cure: "write \"from -> to\"")
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
  /// Changes links of the running graph and its parts in one step: links that stay are not affected, and no packet is lost or duplicated,
  /// as long as no node holds more packets than its contract declares.
  ///
  /// All links that one output gains and loses change between two packets: each packet goes through either the old links or the
  /// new ones. An input reads the rest of its old link before the new one. The nodes keep running; the change takes effect when
  /// their workers begin their next turns. Any thread; takes microseconds per link, on the control side. A new link copies its
  /// packets into its own memory, which counts towards the engine's memory limit.
  /// - Throws: the problem of the first invalid step; nothing has changed then.
  public func edit(_ body: (inout GraphEdit) -> Void) throws(EditProblem) {
    var edit = GraphEdit()
    body(&edit)
    try engine.edit { (editor) throws(EditProblem) in
      try editor.take(edit.steps, in: self)
      try editor.commit()
    }
  }

  /// Links an input to a different output: `relink("mic2 -> enc")`. Same as `edit` with this one step.
  public func relink(_ link: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil)
    throws(EditProblem)
  {
    try edit { $0.relink(link, capacity: capacity, whenFull: whenFull) }
  }

  /// Reports of the live links that lead to nodes of this run; `RunReport.links` has those of the plan.
  public var liveLinks: [LinkReport] {
    engine.topology.withLock { $0.links }.filter { $0.to.run == id }.map(\.report)
  }
}

extension Engine {
  /// Links an output of one run to an input of another run on this engine, for example for a conference.
  ///
  /// The packets belong to no reply of the reading run, so an interruption there does not affect them. Timestamps and positions
  /// are translated from one graph time to the other. The link ends with either run, and neither run affects the other by ending:
  /// the input ends when the writing run does, and a writer never waits for a run that has ended. When the reading run drains, its
  /// links from other runs end first.
  /// - Parameters:
  ///   - writer: the run that packets come from; it must have been started.
  ///   - output: `node` or `node.port`; nodes of parts as in `GraphEdit`.
  ///   - reader: the run that packets go to; it must have been started.
  ///   - input: likewise. It must have been linked when its node was created, and must have no link now.
  ///   - capacity: how much the link holds; nil: the default of graph files.
  ///   - whenFull: its policy when full; nil: the default of graph files. A writer waits for a slow reader only where this is
  ///     `block`.
  ///   - replacing: true: replaces the input's present link, if any; its queued packets are read first.
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

  /// Removes a link between two runs: its queued packets are still read, then the input waits for another link.
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
