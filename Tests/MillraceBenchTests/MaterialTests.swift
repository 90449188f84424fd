import Foundation
import MillraceBailianDouble
import MillraceVideo
import Testing

@testable import MillraceBench

@Suite("Synthetic input for the sampler")
struct MaterialTests {
  @Test("without recordings the pictures are synthetic, of the requested size, and the same every time")
  func synthetic() throws {
    let material = try SamplerMaterial(width: 160, height: 90, corpus: nil)
    #expect(material.isSynthetic)
    #expect(material.videos.count == 1 && material.photographs.count == 3)
    let pictures = material.videos.joined() + material.photographs
    #expect(pictures.allSatisfy { $0.width == 160 && $0.height == 90 })
    // All differ, and none is flat.
    #expect(Set(pictures.map(\.bytes)).count == pictures.count)
    #expect(pictures.allSatisfy { Set($0.bytes).count > 64 })
    let again = try SamplerMaterial(width: 160, height: 90, corpus: nil)
    #expect(again.videos.joined().map(\.bytes) == material.videos.joined().map(\.bytes))
    #expect(again.photographs.map(\.bytes) == material.photographs.map(\.bytes))
  }

  @Test("a folder that does not exist counts as no recordings")
  func nowhere() throws {
    #expect(try SamplerMaterial(width: 160, height: 90, corpus: "/nowhere").isSynthetic)
  }

  @Test("the sampler's goals are for recordings: synthetic pictures have only the budget")
  func goals() {
    func goals(_ hasGoals: Bool) -> [String: String] {
      let figures = SamplerSuite.figures("720p", [SamplerSuite.Row()], isSmallest: true, hasGoals: hasGoals)
      return Dictionary(
        figures.filter { !$0.goal.isEmpty }.map { ($0.name, $0.goal) },
        uniquingKeysWith: { first, _ in first })
    }
    #expect(goals(false) == ["720p: pictures over budget of 1": "0"])
    #expect(goals(true).count == 5)
    #expect(goals(true)["720p: SSIM under the best of any size, mean"] == "<= 1.5")
  }

  @Test("the pictures of a video overlap, and differ from another scene")
  func video() {
    let video = SyntheticPictures.video(width: 320, height: 180, count: 3)
    let other = SyntheticPictures.picture(width: 320, height: 180, grain: 2, seed: 9)
    #expect(video[0].similarity(to: video[0]) > 0.999)
    #expect(
      video[0].part(left: 24, top: 8, width: 200, height: 120)?.bytes
        == video[1].part(left: 0, top: 0, width: 200, height: 120)?.bytes)
    #expect(video[0].similarity(to: other) < 0.5)
  }
}

@Suite("The double in a process of its own")
struct DoubleProcessTests {
  private static let scenario = #"{ "turns": [{ "says": "Yes." }] }"#

  @Test("a program that ends at once is reported without waiting for the timeout")
  func ended() throws {
    let workspace = try Workspace()
    let error = #expect(throws: MeasurementProblem.self) {
      _ = try DoubleProcess(of: BailianProgram.self, Self.scenario, in: workspace, program: "/bin/true")
    }
    #expect(error?.description == "the double ended before it listened; is this program millrace?")
  }

  @Test("it listens, and returns its report")
  func listens() throws {
    let workspace = try Workspace()
    let double = try DoubleProcess(
      of: BailianProgram.self, Self.scenario, in: workspace, program: Self.millrace)
    #expect(double.port > 0)
    #expect(try double.end()["connections"]?.double == 0)
  }

  /// Beside the test bundle, where the build puts both.
  static let millrace: String = {
    let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = (bundle as NSString).deletingLastPathComponent + "/millrace"
    if FileManager.default.isExecutableFile(atPath: beside) { return beside }
    return FileManager.default.currentDirectoryPath + "/.build/debug/millrace"
  }()
}
