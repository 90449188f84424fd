// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "PhoneNodes",
  products: [.library(name: "PhoneNodes", targets: ["PhoneNodes"])],
  dependencies: [
    // A node library needs no microphone, no picture and no call: without the default traits.
    .package(name: "millrace", path: "../..", traits: [])
  ],
  targets: [
    .target(name: "PhoneNodes", dependencies: [.product(name: "MillraceCore", package: "millrace")]),
    .testTarget(
      name: "PhoneNodesTests",
      dependencies: ["PhoneNodes", .product(name: "MillraceTesting", package: "millrace")]),
  ]
)
