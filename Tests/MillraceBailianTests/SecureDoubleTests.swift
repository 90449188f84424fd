import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDoubles
import MillraceJSON
import MillraceTesting
import TestNet
import Testing

@Suite("the double over TLS", .timeLimit(.minutes(30))) struct SecureDoubleTests {
  /// A bound in seconds that no test should reach.
  private static let limit = 300.0

  @Test(
    "the node holds a dialogue over TLS with the members that reach the double; another authority is no use")
  func reached() async throws {
    var options = DoubleOptions()
    options.identity = Certificates.localhost
    let double = try await BailianProgram.start(options)
    defer { double.stop() }
    #expect(double.address.hasPrefix("wss://127.0.0.1:\(double.port)/"))
    #expect(double.settings.first?.value == double.address)
    let members = try #require(
      BailianProgram.nodeMembers(port: double.port, trusting: Certificates.authority, for: .voice))
    #expect(members.contains { $0.name == "url" && $0.value.string == double.address })
    var parameters: [String: ParameterValue] = [:]
    for member in members where member.name != "type" {
      parameters[member.name] = .string(try #require(member.value.string))
    }
    let bench = try NodeBench(
      BailianDialog.self, parameters, inputs: ["audio": Talk.sound, "control": Talk.reports],
      clock: .realtime)
    var states: [String] = []
    let isListening = try bench.wait(
      Self.limit,
      until: {
        states += bench.events().compactMap { $0.name == "state" ? $0.string("state") : nil }
        return states.contains("listening")
      })
    #expect(isListening, "\(states)")
    try bench.finish()
    #expect(bench.close() == [])
    let connections = double.seen.connections
    // A node that trusts somebody else does not get as far.
    parameters["roots"] = .string(Certificates.other.certificate)
    let distrustful = try NodeBench(
      BailianDialog.self, parameters, inputs: ["audio": Talk.sound, "control": Talk.reports],
      clock: .realtime)
    #expect(throws: BenchFault.self) { _ = try distrustful.wait(Self.limit, until: { false }) }
    #expect(connections >= 1 && double.seen.connections == connections)
  }
}
