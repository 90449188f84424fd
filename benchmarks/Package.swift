// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who uses Millrace builds what it is measured beside.
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

    // The rivals, each compiled as its authors would. Both build without them and say so then.
    .target(name: "CPeerRings", cxxSettings: [.define("NDEBUG"), .unsafeFlags(["-O3"])]),
    .systemLibrary(
      name: "CGStreamer", pkgConfig: "gstreamer-base-1.0", providers: [.apt(["libgstreamer1.0-dev"])]),
    .target(name: "CPeerGStreamer", dependencies: ["CGStreamer"]),
  ],
  cxxLanguageStandard: .cxx20
)
