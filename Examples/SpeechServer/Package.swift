// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "SpeechServer",
  dependencies: [
    // Without the default traits, which are for microphones, loudspeakers, pictures and calls.
    .package(name: "millrace", path: "../..", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .executableTarget(
      name: "SpeechServer",
      dependencies: [
        .product(name: "Millrace", package: "millrace"),
        .product(name: "MillraceNet", package: "millrace"),
        .product(name: "MillraceServer", package: "millrace"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ])
  ]
)
