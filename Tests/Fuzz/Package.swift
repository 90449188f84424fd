// swift-tools-version: 6.2
import PackageDescription

/// Fuzz targets, one executable per parser, run by `run.sh`. A separate package, because libFuzzer brings its own `main`: the targets
/// do not link in an ordinary build.
///
/// A new target: a folder in `Sources` with one file that defines `LLVMFuzzerTestOneInput`, an entry below, and seeds in
/// `Corpus/` under the lower-case name without `Fuzz`.
///
/// A parser of a module that builds quickly is imported, `@testable` where it is internal. One of a module that depends on NIO or FFmpeg
/// is compiled into its target through symbolic links to its files, so that a run starts within minutes and only the parser is
/// instrumented. Where its files name types of such a module, as the machines of `MillraceRTCSignal` do, the module is imported all the
/// same: its dependencies are built once.
func fuzzer(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .executableTarget(
    name: name,
    dependencies: dependencies,
    swiftSettings: [
      .swiftLanguageMode(.v6),
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableExperimentalFeature("Lifetimes"),
      // libFuzzer has the `main` and calls the function.
      .unsafeFlags(["-parse-as-library"]),
    ])
}

func product(_ name: String) -> Target.Dependency { .product(name: name, package: "millrace") }

let codecs = [product("MillraceCodecs"), product("MillraceTesting"), product("MillraceCore")]
let signalling = [
  product("MillraceRTCSignal"), product("MillraceRTCWire"), product("MillraceDialog"),
  product("MillraceJSON"), product("MillraceCore"),
]

let package = Package(
  name: "Fuzz",
  dependencies: [.package(name: "millrace", path: "../..")],
  targets: [
    fuzzer("FuzzAddress"),
    fuzzer("FuzzBailian", [product("MillraceDialog"), product("MillraceJSON"), product("MillraceCore")]),
    fuzzer("FuzzControl", [product("MillraceGraph"), product("MillraceCore")]),
    fuzzer("FuzzDialog", [product("MillraceDialog"), product("MillraceJSON")]),
    fuzzer("FuzzFrames"),
    fuzzer("FuzzFraming", [product("MillraceJSON")]),
    fuzzer("FuzzHTTP"),
    fuzzer("FuzzIVH", [product("MillraceDialog"), product("MillraceJSON"), product("MillraceCore")]),
    .target(
      name: "CFuzzImage", cSettings: [.define("MILLRACE_VIDEO")], linkerSettings: [.linkedLibrary("jpeg")]),
    fuzzer("FuzzImage", ["CFuzzImage"]),
    fuzzer("FuzzJSON", [product("MillraceGraph")]),
    fuzzer("FuzzMP3", codecs),
    fuzzer("FuzzOgg", codecs),
    fuzzer("FuzzOpus", codecs),
    fuzzer("FuzzRTCJanus", [product("MillraceDialog"), product("MillraceJSON")]),
    fuzzer("FuzzRTCLink", signalling),
    fuzzer("FuzzRTCPackets", [product("MillraceRTCWire")]),
    fuzzer("FuzzRTCSDP", [product("MillraceRTCWire")]),
    fuzzer("FuzzRTCVideo", [product("MillraceRTC"), product("MillraceRTCWire"), product("MillraceCore")]),
    fuzzer("FuzzRoom", [product("MillraceRoomWire"), product("MillraceJSON")]),
    fuzzer("FuzzRoomMember", signalling + [product("MillraceRoomWire"), product("MillraceNet")]),
    fuzzer(
      "FuzzScenario",
      [
        product("MillraceGraph"), product("MillraceDialog"), product("MillraceJSON"),
        product("MillraceConformance"),
      ]),
    fuzzer(
      "FuzzTuya",
      [
        product("MillraceCrypto"), product("MillraceDialog"), product("MillraceJSON"),
        product("MillraceCore"),
      ]),
    fuzzer("FuzzWAV", [product("MillraceAudio")]),
  ]
)
