// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that users of Millrace do not build the libraries it is compared with.
let package = Package(
  name: "millrace-benchmarks",
  dependencies: [
    .package(name: "millrace", path: "../")
  ],
  targets: [
    .executableTarget(
      name: "resample-file",
      dependencies: [.product(name: "MillraceDSP", package: "millrace")],
      swiftSettings: [.swiftLanguageMode(.v6)]),
    .executableTarget(
      name: "millrace-bench",
      dependencies: [
        .product(name: "Millrace", package: "millrace"),
        .product(name: "MillraceBench", package: "millrace"),
        .product(name: "MillraceRunner", package: "millrace"),
        "CPeerRings", "CPeerGStreamer",
      ],
      swiftSettings: [.swiftLanguageMode(.v6)]),

    // The peers, each compiled with the flags its authors use. Both targets build without the libraries and report them missing.
    .target(name: "CPeerRings", cxxSettings: [.define("NDEBUG"), .unsafeFlags(["-O3"])]),
    .systemLibrary(
      name: "CGStreamer", pkgConfig: "gstreamer-base-1.0", providers: [.apt(["libgstreamer1.0-dev"])]),
    .target(name: "CPeerGStreamer", dependencies: ["CGStreamer"]),
  ],
  cxxLanguageStandard: .cxx20
)
