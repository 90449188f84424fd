import MillraceCore
import Testing

@testable import MillraceBailian

@Suite("parameters of bailian.dialog") struct ResolutionTests {
  @Test("the times of the parameters are those of the session's rules")
  func times() throws {
    var values = ParameterValues()
    for parameter in BailianDialog.contract.parameters { values[parameter.name] = parameter.defaultValue }
    for name in ["workspace", "app", "user"] { values[name] = "x" }
    #expect(try BailianResolution.rules(values, followsPlayback: false).close == .milliseconds(2_000))
    (values["close"], values["begin"]) = (700, 800)
    let rules = try BailianResolution.rules(values, followsPlayback: false)
    #expect(rules.close == .milliseconds(700) && rules.begin == .milliseconds(800))
  }
}
