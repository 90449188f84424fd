import MillraceJSON
import Testing

@Suite("Members of JSON at a path") struct JSONFormTests {
  private enum Colour: String, CaseIterable { case red, green }

  private static let form = JSONForm([
    "name": "a", "count": 3, "whole": .number("3.0"), "half": .number("0.5"), "on": true, "nothing": .null,
    "colour": "green", "list": [["id": 1], ["id": "two"]], "inner": ["text": "deep"],
  ])

  @Test("members are read by their type")
  func reads() throws {
    let form = Self.form
    #expect(try form.string("name") == "a")
    #expect(try form.integer("count") == 3)
    #expect(try form.integer("whole") == 3)
    #expect(try form.number("half") == 0.5)
    #expect(try form.bool("on"))
    #expect(try form.word("colour") == Colour.green)
    #expect(try form.object("inner").string("text") == "deep")
    #expect(try form.array("list")[0].integer("id") == 1)
    #expect(form["nothing"] == nil)
    #expect(form["name"] == "a")
  }

  @Test("a problem names the whole path, and never the content")
  func problems() {
    func text(_ body: () throws(JSONFormProblem) -> Void) -> String {
      do throws(JSONFormProblem) { try body() } catch { return error.description }
      return ""
    }
    let form = JSONForm(["payload": Self.form.json])
    #expect(
      text { () throws(JSONFormProblem) in _ = try form.object("payload").array("list")[1].integer("id") }
        == #""payload.list[1].id" must be an integer"#)
    #expect(
      text { () throws(JSONFormProblem) in _ = try form.object("payload").object("inner").bool("text") }
        == #""payload.inner.text" must be true or false"#)
    #expect(
      text { () throws(JSONFormProblem) in _ = try form.object("name") } == #""name" must be an object"#)
    #expect(
      text { () throws(JSONFormProblem) in let _: Colour = try form.object("payload").word("name") }
        == #""payload.name" must be one of red, green"#)
    #expect(
      text { () throws(JSONFormProblem) in _ = try form.object("payload").string("nothing") }
        == #""payload.nothing" must be a string"#)
    #expect(
      text { () throws(JSONFormProblem) in _ = try form.object("payload").number("on") }
        == #""payload.on" must be a number"#)
    #expect(JSONFormProblem("", "invalid").description == "invalid")
  }
}
