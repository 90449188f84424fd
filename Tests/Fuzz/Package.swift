// swift-tools-version: 6.2
import PackageDescription

/// Fuzz targets, one executable a parser, run by `run.sh`. A package of its own, because libFuzzer brings its own `main` and so
/// these never link in an ordinary build.
///
/// A new target: a folder in `Sources` with one file that defines `LLVMFuzzerTestOneInput`, an entry below, and seeds in
/// `Corpus/` under the lower-case name without `Fuzz`.
func fuzzer(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(
    name: name,
    dependencies: dependencies,
    swiftSettings: [
      .swiftLanguageMode(.v6),
      .enableUpcomingFeature("ExistentialAny"),
      // libFuzzer calls the function; there is no `main` of ours.
      .unsafeFlags(["-parse-as-library"]),
    ])
}

let codecs: [Target.Dependency] = [
  .product(name: "MillraceCodecs", package: "millrace"),
  .product(name: "MillraceTesting", package: "millrace"),
  .product(name: "MillraceCore", package: "millrace"),
]

let package = Package(
  name: "Fuzz",
  dependencies: [.package(name: "millrace", path: "../..")],
  targets: [
    fuzzer("FuzzJSON", [.product(name: "MillraceGraph", package: "millrace")]),
    fuzzer("FuzzWAV", [.product(name: "MillraceAudio", package: "millrace")]),
    fuzzer("FuzzMP3", codecs),
    fuzzer("FuzzOpus", codecs),
  ]
)
