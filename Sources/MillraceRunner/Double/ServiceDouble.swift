package import MillraceCore
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceGraph
internal import MillraceJSON
internal import MillraceNet

/// `service.double`: simulates a service on this machine, so that a graph with the service's node runs without an account.
///
/// - No inputs. Out `events`: `extra` `listening` once, with the port and the address; `error` for what clients do wrong.
/// - Parameters: `service`, one of the runner's services; `port`; `scenario`, by default the conversation of `talk --double`.
/// - It listens when it has been created: blocks meanwhile, milliseconds, or longer where the double starts a program of its own. Nodes
///   are created in the order of the file unless they are linked, so a client that comes after it connects at its first attempt.
/// - Violations are `error` events of the category `request`, at most one a second: the first since the last such event, and their
///   `count`. What is left is posted when the node finishes.
/// - A scenario that is not valid, a port in use and an unknown service are refused before the graph starts.
/// - It listens until the run has stopped, also after it has ended, so that clients can close their sessions while the graph drains.
/// - Lane `external`. A call allocates only when it posts an event, and locks only when there is a violation to post.
struct ServiceDoubleNode: Node, ~Copyable {
  static let service = Parameter<String>(
    "service", text: "the service to simulate; millrace double lists them")
  static let port = ParameterContract(
    "port", .integer(0...65_535), default: 0, text: "port to listen on, on this machine; 0: any free port"
  ).opening(ListeningSocket(host: nil))
  static let scenario = Parameter<String>.path(
    "scenario",
    text: "the scenario to play, a JSON file; default: a few replies for somebody who tries it out"
  ).optional

  static let extra = EventContract(
    "extra",
    text: "`name` `listening`: clients can connect; the `payload` has `port` and `address`")
  static let violation = EventContract(
    "error",
    text:
      "a client did something wrong, at most one event a second: `vendor`, `name`, `category` request, `reaction`, `scope`, `text` of the first since the last event, and their `count`"
  )

  static let contract = NodeContract(
    "service.double", "simulates a service on this machine, without an account",
    text: """
      A graph with it and with the service's node runs by itself: the node's `url` is the address of the double. Put it before that \
      node in the file, so that it listens first. It speaks the service's protocol, plays a scenario, and reports what its clients do \
      wrong. It listens at 127.0.0.1, without TLS unless the service has nothing else, until the graph has stopped. It keeps no graph \
      running: it ends when all other nodes have ended. A double with a certificate of its own makes it at its start, so a graph \
      cannot name it: use millrace talk --double there.
      """,
    parameters: [service, port, scenario], events: [extra, violation],
    lane: .external, budget: 200, drive: .itself, followsVirtualClock: false,
    examples: [
      #"{ "type": "service.double", "service": "bailian", "port": 8770 }"#,
      #"{ "type": "service.double", "service": "websocket", "port": 8771, "scenario": "scenario.json" }"#,
    ],
    resolve: { ServiceDoubleNode.resolve(&$0) }
  ).endingWithOthers

  /// Size of the largest event: a violation's text, of which each byte may become an escape of six, and the other members.
  private static let eventBytes = 4_096

  private let double: any RunningDouble
  private let vendor: String
  private let inbox: ViolationInbox
  private let extra: EventPort
  private let violation: EventPort
  private var hasReportedListening = false
  private var throttle = EventThrottle()
  /// When the next violation may be posted.
  private var nextPost: Nanoseconds = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let name = setup[Self.service]
    let inbox = ViolationInbox(setup.waker)
    var options = DoubleOptions()
    options.scenario = try Self.readScenario(at: setup[Self.scenario])
    options.port = setup.parameters.integer(Self.port.name)
    options.watch = { inbox.note($0) }
    let double = try Self.start(try Self.program(name), options)

    // Nothing may throw from here on: destroying the node is what stops the double.
    self.double = double
    self.inbox = inbox
    vendor = name
    extra = setup.event(Self.extra)
    violation = setup.event(Self.violation)
  }

  deinit { double.stop() }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportListening(&ports)
    reportViolations(&ports)
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    reportListening(&ports)
    reportViolations(&ports, isLast: true)
    return .ended
  }

  // MARK: Events

  private mutating func reportListening(_ ports: inout Ports) {
    guard !hasReportedListening else { return }
    hasReportedListening = true
    let payload = JSONValue.object(["port": .integer(double.port), "address": .string(double.address)])
    Self.post(.extra(name: "listening", payload: payload), as: extra, &ports)
  }

  private mutating func reportViolations(_ ports: inout Ports, isLast: Bool = false) {
    guard inbox.hasReport else { return }
    guard throttle.allows(at: ports.now, isLast: isLast) else { return ports.wake(at: nextPost) }
    nextPost = ports.now + EventThrottle.interval
    guard let report = inbox.take() else { return }
    let error = DialogError(
      vendor: vendor, name: report.name, category: .request, reaction: .continue, scope: .command,
      text: report.text)
    Self.post(.error(error), count: report.count, as: violation, &ports)
  }

  private static func post(
    _ event: DialogEvent, count: Int? = nil, as port: EventPort, _ ports: inout Ports
  ) {
    var members = event.details.members ?? []
    if let count { members.append(JSONValue.Member("count", .integer(count))) }
    let fields = members.map { (Array($0.name.utf8), $0.value.bytes) }
    ports.post(port) { writer in
      for (name, value) in fields { writer.field(name.span, json: value.span) }
    }
  }

  // MARK: Starting

  private static func resolve(_ resolution: inout Resolution) {
    let name = resolution.parameters[service]
    if !RunnerContext.services.contains(where: { $0.name == name }) {
      resolution.refuse(service.name, unknown(name), cure: known)
    }
    // A call may report that the double listens, and a violation.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: eventBytes, burst: 2)
  }

  private static func unknown(_ name: String) -> String { "there is no service \(Problem.quoted(name))" }

  private static var known: String {
    "the services are \(RunnerContext.services.map { $0.name }.joined(separator: ", "))"
  }

  private static func program(_ name: String) throws(NodeProblem) -> any ServiceProgram.Type {
    guard let found = RunnerContext.services.first(where: { $0.name == name }) else {
      throw NodeProblem(unknown(name), parameter: service.name, cure: known)
    }
    return found
  }

  private static func readScenario(at path: String?) throws(NodeProblem) -> DoubleOptions.Scenario {
    guard let path else { return .conversation }
    do throws(FileProblem) {
      let source = try SourceFile.read(path: path)
      return .text(String(decoding: source.bytes, as: UTF8.self), name: path)
    } catch {
      throw NodeProblem("\(error)", parameter: scenario.name)
    }
  }

  private static func start(
    _ program: any ServiceProgram.Type, _ options: DoubleOptions
  ) throws(NodeProblem) -> any RunningDouble {
    let made = Promise.runBlocking { () -> Result<any RunningDouble, DoubleProblem> in
      do throws(DoubleProblem) {
        return .success(try await program.start(options))
      } catch {
        return .failure(error)
      }
    }
    do throws(DoubleProblem) { return try made.get() } catch { throw problem(error) }
  }

  private static func problem(_ problem: DoubleProblem) -> NodeProblem {
    let also = "also in the address that its clients have"
    switch problem {
    case .scenario(let problem):
      // The graph's problem says already that it is an error.
      return NodeProblem(
        problem.description.replacing(": error: ", with: ": ", maxReplacements: 1), parameter: scenario.name)
    case .listening(let reason):
      let cure: String? =
        switch reason.obstacle {
        case .inUse?: "set \"port\" to another one, \(also), or end the program that listens there"
        case .notPermitted?: "set \"port\" to one above 1023, \(also)"
        case .notAvailable?, nil: nil
        }
      return NodeProblem(reason.text, parameter: port.name, cure: cure)
    case .other(let text): return NodeProblem(text)
    }
  }
}

extension NodeContract {
  /// The same contract, of a node that ends when all others have.
  fileprivate var endingWithOthers: NodeContract {
    var contract = self
    contract.endsWithOthers = true
    return contract
  }
}

extension Catalogue {
  /// These nodes and `service.double`, unless one of them has that name: what a runner's graphs can use. The services are those of the
  /// runner that was called last, or the standard ones.
  package var withServiceDouble: Catalogue {
    guard self[ServiceDoubleNode.contract.type] == nil else { return self }
    var catalogue = self
    catalogue.add(ServiceDoubleNode.self)
    return catalogue
  }
}
