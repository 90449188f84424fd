import Foundation
import MillraceVideo
import Testing

@testable import MillraceBench

@Suite("What is measured where there are no recordings")
struct MaterialTests {
  @Test("without recordings the sampler gets pictures of its size that are made up, the same every time")
  func madeUp() throws {
    let material = try SamplerMaterial(width: 160, height: 90, corpus: nil)
    #expect(material.isMadeUp)
    #expect(material.films.count == 1 && material.photographs.count == 3)
    let pictures = material.films.joined() + material.photographs
    #expect(pictures.allSatisfy { $0.width == 160 && $0.height == 90 })
    // Each is another one, and none is a flat field.
    #expect(Set(pictures.map(\.bytes)).count == pictures.count)
    #expect(pictures.allSatisfy { Set($0.bytes).count > 64 })
    let again = try SamplerMaterial(width: 160, height: 90, corpus: nil)
    #expect(again.films.joined().map(\.bytes) == material.films.joined().map(\.bytes))
    #expect(again.photographs.map(\.bytes) == material.photographs.map(\.bytes))
  }

  @Test("a folder that does not exist counts as no recordings")
  func nowhere() throws {
    #expect(try SamplerMaterial(width: 160, height: 90, corpus: "/nowhere").isMadeUp)
  }

  @Test("pictures of a film follow each other: each is more like the next than like another scene")
  func film() {
    let film = MadePictures.film(width: 320, height: 180, count: 3)
    let other = MadePictures.picture(width: 320, height: 180, grain: 2, seed: 9)
    #expect(film[0].similarity(to: film[0]) > 0.999)
    #expect(
      film[0].part(left: 24, top: 8, width: 200, height: 120)?.bytes
        == film[1].part(left: 0, top: 0, width: 200, height: 120)?.bytes)
    #expect(film[0].similarity(to: other) < 0.5)
  }
}

@Suite("The double as a process of its own")
struct DoubleProcessTests {
  private static let scenario = #"{ "turns": [{ "says": "Yes." }] }"#

  @Test("a program that ends at once is reported as such, and is not waited for")
  func ended() throws {
    let workspace = try Workspace()
    let error = #expect(throws: MeasurementProblem.self) {
      _ = try DoubleProcess(Self.scenario, in: workspace, program: "/bin/true")
    }
    #expect(error?.description == "the double ended before it listened; is this program millrace?")
  }

  @Test("it listens, and tells what it has seen")
  func listens() throws {
    let workspace = try Workspace()
    let double = try DoubleProcess(Self.scenario, in: workspace, program: Self.millrace)
    #expect(double.port > 0)
    #expect(try double.end()["visits"]?.double == 0)
  }

  /// Beside the test bundle, where the build puts both.
  private static let millrace: String = {
    let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = (bundle as NSString).deletingLastPathComponent + "/millrace"
    if FileManager.default.isExecutableFile(atPath: beside) { return beside }
    return FileManager.default.currentDirectoryPath + "/.build/debug/millrace"
  }()
}
