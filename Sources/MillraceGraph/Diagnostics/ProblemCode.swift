extension Problem {
  /// What kind of problem it is. Programs and tests compare codes; `Problems.json` contains their names.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    // MARK: Files and JSON

    /// A file could not be read.
    case unreadableFile
    /// A source is larger than `SourceFile.sizeLimit`.
    case tooLarge
    /// A source is not UTF-8, or starts with a byte order mark.
    case notUTF8
    /// A source contains no JSON value.
    case emptyDocument
    /// Something other than what the grammar of JSON requires.
    case unexpectedToken
    /// Text after the JSON value.
    case trailingContent
    /// An array or object is not closed.
    case unclosedBracket
    /// A comma before a closing bracket.
    case trailingComma
    /// Too many levels of arrays and objects.
    case nestedTooDeep
    /// A comment.
    case comment
    /// A key appears twice in an object.
    case duplicateKey
    /// A key or a string without quotes.
    case unquoted
    /// A number that is not valid JSON, or beyond the range of a double.
    case invalidNumber
    /// A string is not closed on its line.
    case unterminatedString
    /// A control character in a string.
    case controlCharacter
    /// An escape that JSON does not have, or an unpaired surrogate.
    case invalidEscape

    // MARK: Graph files

    /// The document is not a graph.
    case notAGraph
    /// The version of the file format is not supported.
    case unsupportedVersion
    /// A key has a JSON value of another type.
    case wrongType
    /// A key that does not exist.
    case unknownKey
    /// A required key is missing.
    case missingKey
    /// The value of a key is not one of those it accepts.
    case invalidValue
    /// The name of a graph, node or parameter is not valid.
    case invalidName
    /// Two nodes or parameters have the same name.
    case duplicateName
    /// A link is not written as `from -> to`.
    case invalidLink
    /// A placeholder `${…}` is not valid where it is.
    case invalidPlaceholder
    /// An environment variable is not set.
    case unsetVariable
    /// The value of a key is secret, but the key is shown.
    case secretNotAllowed
    /// The values substituted for placeholders are too large.
    case valuesTooLarge
    /// A graph includes itself.
    case includeCycle
    /// Too many levels of includes.
    case includesTooDeep
    /// Too many nodes and included graphs.
    case graphTooLarge

    // MARK: Parameters of graphs

    /// The graph does not declare the parameter.
    case unknownGraphParameter
    /// A parameter without a value.
    case missingValue
    /// A parameter that nothing uses.
    case unusedParameter

    // MARK: Nodes

    /// A graph without nodes.
    case emptyGraph
    /// The catalogue has no such node type.
    case unknownType
    /// The node type has no such parameter.
    case unknownParameter
    /// A required parameter is missing.
    case missingParameter
    /// The value of a parameter has another type.
    case wrongParameterType
    /// The value of a parameter is outside its range or choices.
    case parameterOutOfRange
    /// The node's contract rejects its parameters or inputs, or the node could not be created.
    case nodeRejected

    // MARK: Links

    /// No node has this name.
    case unknownNode
    /// The node has no such port.
    case unknownPort
    /// A name that several ports match.
    case ambiguousPort
    /// Two links between the same ports.
    case duplicateLink
    /// Two links to one input.
    case inputLinkedTwice
    /// The capacity of a link is out of range.
    case invalidCapacity
    /// A node without links.
    case unlinkedNode
    /// A required port without a link.
    case unlinkedPort
    /// None of a node's driving inputs is linked.
    case nodeNeverRuns
    /// A cycle without an asynchronous path.
    case synchronousCycle

    // MARK: Formats and memory

    /// The format of an output is unknown.
    case undeterminedFormat
    /// The formats of a cycle do not converge.
    case unstableFormat
    /// A link carries a format that its input does not accept.
    case formatMismatch
    /// Packets are larger than a block.
    case packetTooLarge
    /// A run can use more memory than the graph or the machine allows.
    case memoryLimit

    // MARK: Running

    /// A link blocks a live source.
    case blockingLiveSource
    /// The setting has no effect.
    case noEffect
    /// The node cannot run on this lane.
    case invalidLane
    /// The node can block the voice lane.
    case blockingOnVoiceLane
    /// The nodes on lane voice need more than one worker.
    case voiceBudget
    /// The node cannot follow a virtual clock.
    case virtualClock
    /// An overload step is not valid.
    case invalidOverload
    /// The parameter cannot be set while the graph runs.
    case notLive
    /// A node cannot end with the node it names.
    case invalidEndsWith

    // MARK: Reports

    /// There are more problems than are shown.
    case moreProblems
    /// Any other problem.
    case other
  }
}
