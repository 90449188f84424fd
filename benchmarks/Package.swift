// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who uses Millrace builds the measuring programs.
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
        .product(name: "MillraceDSP", package: "millrace"),
      ],
      swiftSettings: [.swiftLanguageMode(.v6)]),
  ]
)
