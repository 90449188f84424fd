import MillraceCore
import MillraceService
import Testing

@Suite("Parameters of services") struct ServiceParameterTests {
  @Test("a text is given when it is set and not empty")
  func given() {
    let values = ParameterValues(["full": .string("a"), "blank": .string(" "), "empty": .string("")])
    #expect(values.given("full") == "a" && values.given("blank") == " ")
    #expect(values.given("empty") == nil && values.given("absent") == nil)
  }
}
