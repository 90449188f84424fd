// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "PushToBot",
  dependencies: [
    // In a package of your own: .package(url: "…", from: "…")
    .package(name: "millrace", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "push-to-bot",
      dependencies: [
        .product(name: "Millrace", package: "millrace"),
        .product(name: "MillraceBailianDouble", package: "millrace"),
      ])
  ]
)
