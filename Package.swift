// swift-tools-version: 6.2
import PackageDescription

/// Settings of every Swift target: the strictest the compiler offers, so that a data race, an unchecked pointer or a
/// forgotten import is an error at build time.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableExperimentalFeature("Lifetimes"),
]

/// Settings of test targets: as `strict`, without the memory-safety markers, which the test macros do not carry.
let tests: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableExperimentalFeature("Lifetimes"),
]

/// Nodes that a build can do without.
let devices: Target.Dependency = .target(name: "MillraceDevices", condition: .when(traits: ["Devices"]))
let video: Target.Dependency = .target(name: "MillraceVideo", condition: .when(traits: ["Video"]))
let rtc: Target.Dependency = .target(name: "MillraceRTCNodes", condition: .when(traits: ["RTC"]))
let rtcLibrary: Target.Dependency = .target(name: "MillraceRTC", condition: .when(traits: ["RTC"]))
let rtcWire: Target.Dependency = .target(name: "MillraceRTCWire", condition: .when(traits: ["RTC"]))
let room: Target.Dependency = .target(name: "MillraceRoom", condition: .when(traits: ["RTC"]))
let roomWire: Target.Dependency = .target(name: "MillraceRoomWire", condition: .when(traits: ["RTC"]))
/// Measures pictures too.
let bench: Target.Dependency = .target(name: "MillraceBench", condition: .when(traits: ["Video"]))

let package = Package(
  name: "millrace",
  products: [
    .library(name: "Millrace", targets: ["Millrace"]),
    .library(name: "MillraceRunner", targets: ["MillraceRunner"]),
    .library(name: "MillraceTesting", targets: ["MillraceTesting"]),
    .library(name: "MillraceGraph", targets: ["MillraceGraph"]),
    .library(name: "MillraceDSP", targets: ["MillraceDSP"]),
    .library(name: "MillraceAudio", targets: ["MillraceAudio"]),
    .library(name: "MillraceDevices", targets: ["MillraceDevices"]),
    .library(name: "MillraceCodecs", targets: ["MillraceCodecs"]),
    .library(name: "MillraceVideo", targets: ["MillraceVideo"]),
    .library(name: "MillraceJSON", targets: ["MillraceJSON"]),
    .library(name: "MillraceDialog", targets: ["MillraceDialog"]),
    .library(name: "MillraceCrypto", targets: ["MillraceCrypto"]),
    .library(name: "MillraceNet", targets: ["MillraceNet"]),
    .library(name: "MillraceRTCWire", targets: ["MillraceRTCWire"]),
    .library(name: "MillraceRTC", targets: ["MillraceRTC"]),
    .library(name: "MillraceRTCSignal", targets: ["MillraceRTCSignal"]),
    .library(name: "MillraceRTCSound", targets: ["MillraceRTCSound"]),
    .library(name: "MillraceRTCNodes", targets: ["MillraceRTCNodes"]),
    .library(name: "MillraceRoomWire", targets: ["MillraceRoomWire"]),
    .library(name: "MillraceRoom", targets: ["MillraceRoom"]),
    .library(name: "MillraceService", targets: ["MillraceService"]),
    .library(name: "MillraceWebSocket", targets: ["MillraceWebSocket"]),
    .library(name: "MillraceBailian", targets: ["MillraceBailian"]),
    .library(name: "MillraceBailianDouble", targets: ["MillraceBailianDouble"]),
    .library(name: "MillraceIVH", targets: ["MillraceIVH"]),
    .library(name: "MillraceIVHDouble", targets: ["MillraceIVHDouble"]),
    .library(name: "MillraceTuya", targets: ["MillraceTuya"]),
    .library(name: "MillraceTuyaDouble", targets: ["MillraceTuyaDouble"]),
    .library(name: "MillraceDoubles", targets: ["MillraceDoubles"]),
    .library(name: "MillraceConformance", targets: ["MillraceConformance"]),
    .library(name: "MillraceServer", targets: ["MillraceServer"]),
    .library(name: "MillraceWebSocketDouble", targets: ["MillraceWebSocketDouble"]),
    .library(name: "MillraceCore", targets: ["MillraceCore"]),
    .library(name: "MillraceBench", targets: ["MillraceBench"]),
    .executable(name: "millrace", targets: ["millrace"]),
  ],
  // Parts with libraries of their own, all of them on by default. A server that talks over the network needs none:
  // `swift build --disable-default-traits`, or `traits: []` at the dependency (Documentation/servers.md).
  traits: [
    .trait(name: "Devices", description: "Microphones and loudspeakers: PulseAudio, PipeWire, ALSA."),
    .trait(name: "Video", description: "Pictures: video files, screens and cameras, JPEG, RTMP."),
    .trait(name: "RTC", description: "WebRTC and RTP: WHIP, WHEP, RTS, Janus, data channels."),
    .default(enabledTraits: ["Devices", "Video", "RTC"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    // To a minor version: ServerName and ConnectionAttempt call functions that are not stable (Documentation/decisions.md).
    .package(url: "https://github.com/apple/swift-nio-ssl", .upToNextMinor(from: "2.37.6")),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // C: the operating system, the kernels and the libraries of Debian.
    .target(name: "CMillraceSys"),
    .target(name: "CMillraceKernels"),
    .target(name: "CMallocCount"),
    .systemLibrary(name: "COpus", pkgConfig: "opus", providers: [.apt(["libopus-dev"])]),
    .systemLibrary(name: "COgg", pkgConfig: "ogg", providers: [.apt(["libogg-dev"])]),
    .systemLibrary(name: "CSpeexDSP", pkgConfig: "speexdsp", providers: [.apt(["libspeexdsp-dev"])]),
    .systemLibrary(name: "CMPG123", pkgConfig: "libmpg123", providers: [.apt(["libmpg123-dev"])]),
    .systemLibrary(name: "CFFmpeg", pkgConfig: "libavformat", providers: [.apt(["libavformat-dev"])]),
    .target(
      name: "CMediaShim", dependencies: ["CFFmpeg"],
      cSettings: [.define("MILLRACE_VIDEO", .when(traits: ["Video"]))],
      linkerSettings: [
        .linkedLibrary("avutil"), .linkedLibrary("jpeg", .when(traits: ["Video"])), .linkedLibrary("dl"),
      ]),
    .systemLibrary(name: "CPulse", pkgConfig: "libpulse", providers: [.apt(["libpulse-dev"])]),
    .systemLibrary(name: "CALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
    .systemLibrary(name: "CSampleRate", pkgConfig: "samplerate", providers: [.apt(["libsamplerate0-dev"])]),
    .systemLibrary(name: "CNice", pkgConfig: "nice", providers: [.apt(["libnice-dev"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
    .systemLibrary(name: "CSCTP", pkgConfig: "usrsctp", providers: [.apt(["libusrsctp-dev"])]),
    .target(name: "CRtcShim", dependencies: ["CNice", "CSSL", "CSRTP", "CSCTP"]),

    // Ground, plan, engine: no third-party package, no codec.
    .target(name: "MillraceCore", dependencies: ["CMillraceSys"], swiftSettings: strict),
    .target(name: "MillraceGraph", dependencies: ["MillraceCore"], swiftSettings: strict),
    .target(
      name: "MillraceEngine", dependencies: ["MillraceCore", "MillraceGraph", "CMillraceSys"],
      swiftSettings: strict),

    // Signal and nodes.
    .target(name: "MillraceFiles", dependencies: ["MillraceCore"], swiftSettings: strict),
    .target(name: "MillraceDSP", dependencies: ["CMillraceKernels"], swiftSettings: strict),
    .target(
      name: "MillraceAudio",
      dependencies: ["MillraceCore", "MillraceFiles", "MillraceDSP", "CFFmpeg", "CMediaShim", "CSpeexDSP"],
      swiftSettings: strict),
    .target(
      name: "MillraceCodecs",
      dependencies: ["MillraceCore", "MillraceFiles", "MillraceDSP", "COpus", "COgg", "CMPG123"],
      swiftSettings: strict),
    .target(
      name: "MillraceVideo",
      dependencies: [
        "MillraceCore", "MillraceFiles", "MillraceDSP", "MillraceAudio", "MillraceJSON", "CFFmpeg",
        "CMediaShim",
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceDevices",
      dependencies: [
        "MillraceCore", "MillraceFiles", "MillraceDSP", "MillraceAudio", "CMillraceSys", "CPulse", "CALSA",
        "CSampleRate",
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceFlow", dependencies: ["MillraceCore", "MillraceFiles", "CMillraceSys"],
      swiftSettings: strict),

    // Wires and the language of services.
    .target(name: "MillraceJSON", swiftSettings: strict),
    .target(
      name: "MillraceDialog", dependencies: ["MillraceCore", "MillraceJSON"], swiftSettings: strict),
    .target(
      name: "MillraceCrypto", dependencies: ["MillraceJSON", "CCrypto"], swiftSettings: strict),
    .target(
      name: "MillraceNet",
      dependencies: [
        "CMillraceSys", "MillraceJSON",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: strict),

    // WebRTC: descriptions and packets, and the way they go over a network.
    .target(name: "MillraceRTCWire", dependencies: ["MillraceJSON"], swiftSettings: strict),
    .target(
      name: "MillraceRTC", dependencies: ["MillraceCore", "MillraceRTCWire", "CRtcShim"],
      swiftSettings: strict),
    // How two sides learn each other's descriptions: WHIP, WHEP, RTS, Janus, the open room. No media.
    .target(
      name: "MillraceRTCSignal",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceDialog", "MillraceNet", "MillraceRTCWire",
        "MillraceRoomWire",
      ],
      swiftSettings: strict),

    // The messages between a member of a room and its hub. Pure Swift, no socket.
    .target(name: "MillraceRoomWire", dependencies: ["MillraceJSON"], swiftSettings: strict),
    // Rooms: who is in them, what each may do, their sound and pictures, and the page for browsers.
    .target(
      name: "MillraceRoom",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceCrypto", "MillraceNet", "MillraceDSP", "MillraceCodecs",
        "MillraceRoomWire", "MillraceRTCWire", "MillraceRTC", "MillraceRTCSound",
      ],
      resources: [.embedInCode("Page/room.html"), .embedInCode("Page/room.js")], swiftSettings: strict),

    // The ground of services.
    .target(
      name: "MillraceService",
      dependencies: ["MillraceCore", "MillraceJSON", "MillraceDialog", "MillraceNet"], swiftSettings: strict),

    // Received sound to play, and sound to send: jitter, codecs, levels.
    .target(
      name: "MillraceRTCSound",
      dependencies: ["MillraceCore", "MillraceDSP", "MillraceCodecs", "MillraceRTCWire"],
      swiftSettings: strict),

    .target(
      name: "MillraceRTCNodes",
      dependencies: [
        "MillraceCore", "MillraceFiles", "MillraceDSP", "MillraceCodecs", "MillraceJSON", "MillraceCrypto",
        "MillraceDialog",
        "MillraceNet", "MillraceService", "MillraceRTCWire", "MillraceRTC", "MillraceRTCSignal",
        "MillraceRTCSound", "MillraceRoomWire", "MillraceRoom",
      ],
      swiftSettings: strict),

    // What every service node is held against, with a double of its service.
    .target(
      name: "MillraceConformance",
      dependencies: [
        "MillraceCore", "MillraceGraph", "MillraceEngine", "MillraceJSON", "MillraceDialog", "CMillraceSys",
      ],
      swiftSettings: strict),

    // What the doubles of all services share.
    .target(
      name: "MillraceDoubles",
      dependencies: [
        "MillraceCore", "MillraceGraph", "MillraceDSP", "MillraceJSON", "MillraceDialog", "MillraceNet",
        "MillraceConformance", "CMillraceSys", "CFFmpeg", "CMediaShim", "COpus",
      ],
      swiftSettings: strict),

    .target(
      name: "MillraceWebSocketDouble",
      dependencies: [
        "MillraceConformance", "MillraceJSON", "MillraceDialog", "MillraceDoubles", "MillraceNet",
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceWebSocket",
      dependencies: ["MillraceCore", "MillraceJSON", "MillraceDialog", "MillraceNet", "MillraceService"],
      swiftSettings: strict),

    // Services, and their doubles.
    .target(
      name: "MillraceBailian",
      dependencies: ["MillraceCore", "MillraceJSON", "MillraceDialog", "MillraceNet", "MillraceService"],
      swiftSettings: strict),
    .target(
      name: "MillraceBailianDouble",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceDialog", "MillraceNet", "MillraceGraph",
        "MillraceConformance", "MillraceDoubles",
      ],
      swiftSettings: strict),

    .target(
      name: "MillraceIVH",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceCrypto", "MillraceDialog", "MillraceNet", "MillraceService",
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceIVHDouble",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceCrypto", "MillraceDialog", "MillraceNet", "MillraceGraph",
        "MillraceService", "MillraceConformance", "MillraceDoubles", "MillraceEngine", "MillraceAudio", video,
      ],
      swiftSettings: strict),

    .target(
      name: "MillraceTuya",
      dependencies: [
        "MillraceCore", "MillraceFiles", "MillraceJSON", "MillraceCrypto", "MillraceDialog", "MillraceNet",
        "MillraceService",
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceTuyaDouble",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceCrypto", "MillraceDialog", "MillraceNet", "MillraceGraph",
        "MillraceConformance", "MillraceDoubles",
      ],
      swiftSettings: strict),

    // Life in a server: services, log, metrics, traces, through the packages that servers in Swift share.
    .target(
      name: "MillraceServer",
      dependencies: [
        "MillraceCore", "MillraceGraph", "MillraceEngine", "MillraceJSON", "MillraceDialog", "MillraceNet",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "CoreMetrics", package: "swift-metrics"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict),

    // Face, help, runner.
    .target(
      name: "Millrace",
      dependencies: [
        "MillraceCore", "MillraceGraph", "MillraceEngine", "MillraceAudio", devices, "MillraceCodecs", video,
        "MillraceFlow", "MillraceDialog", "MillraceWebSocket", "MillraceBailian", "MillraceIVH",
        "MillraceTuya", rtc,
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceTesting",
      dependencies: ["MillraceCore", "MillraceGraph", "MillraceEngine", "CMallocCount"],
      swiftSettings: strict),
    .target(
      name: "MillraceBench",
      dependencies: [
        "Millrace", "MillraceCore", "MillraceGraph", "MillraceEngine", "MillraceDSP", "MillraceVideo",
        "MillraceJSON", "MillraceDialog", "MillraceDoubles", "MillraceNet", "MillraceCrypto", "MillraceTuya",
        rtcLibrary, rtcWire, room, roomWire, "CMillraceSys", "COpus", "COgg", "CSpeexDSP", "CFFmpeg",
      ],
      swiftSettings: strict),
    .target(
      name: "MillraceRunner",
      dependencies: [
        "Millrace", bench, room, roomWire, "MillraceCore", "MillraceDSP", devices, "MillraceFiles",
        "MillraceGraph", "MillraceEngine", "MillraceDoubles", "MillraceBailianDouble", "MillraceIVHDouble",
        "MillraceTuyaDouble", "MillraceWebSocketDouble", "MillraceConformance", "MillraceCrypto",
        "MillraceJSON", "MillraceDialog",
        "MillraceNet", "MillraceServer", "CMillraceSys",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "millrace", dependencies: ["Millrace", "MillraceRunner"], path: "Sources/millrace-cli",
      swiftSettings: strict),

    // Examples: as a program outside of this package would be built.
    .executableTarget(
      name: "robot-bot", dependencies: ["Millrace"], path: "Sources/Examples/RobotBot",
      swiftSettings: [.swiftLanguageMode(.v6)]),
    // A service with its node and its double, and a runner that knows it.
    .target(
      name: "EchoService",
      dependencies: [
        "MillraceCore", "MillraceJSON", "MillraceDialog", "MillraceNet", "MillraceService",
        "MillraceConformance", "MillraceDoubles",
      ],
      path: "Sources/Examples/EchoService", swiftSettings: [.swiftLanguageMode(.v6)]),
    .executableTarget(
      name: "echo-runner", dependencies: ["EchoService", "Millrace", "MillraceRunner"],
      path: "Sources/Examples/EchoRunner", swiftSettings: [.swiftLanguageMode(.v6)]),

    // Tests.
    // Folders, files and programs beside a test; compressed recordings that tests make for themselves.
    .target(
      name: "TestSystem", dependencies: ["CMillraceSys"], path: "Tests/TestSystem", swiftSettings: tests),
    // Raw peers, a network that can be cut, certificates.
    .target(
      name: "TestNet", dependencies: ["MillraceNet", "MillraceCore"], path: "Tests/TestNet",
      exclude: ["Certificates"], swiftSettings: tests),
    .target(name: "CTestLog", dependencies: ["CFFmpeg", "CMediaShim"], path: "Tests/CTestLog"),
    .target(
      name: "TestMedia", dependencies: ["TestSystem", "CTestLog", "CFFmpeg", "CMediaShim"],
      path: "Tests/TestMedia",
      swiftSettings: tests),
    .testTarget(
      name: "CInteropTests",
      dependencies: ["COpus", "COgg", "CFFmpeg", "CMediaShim", "CSpeexDSP", "CMallocCount"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceEngineTests",
      dependencies: ["MillraceEngine", "MillraceGraph", "MillraceCore", "CMillraceSys", "CMallocCount"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceDSPTests",
      dependencies: ["MillraceDSP", "MillraceFiles", "MillraceTesting", "CMillraceKernels", "CMallocCount"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceGraphTests", dependencies: ["MillraceGraph", "MillraceCore"], swiftSettings: tests),
    .testTarget(
      name: "MillraceCodecsTests",
      dependencies: [
        "MillraceCodecs", "MillraceCore", "MillraceTesting", "TestMedia", "TestSystem", "COpus",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceCoreTests", dependencies: ["MillraceCore", "TestSystem"], swiftSettings: tests),
    .testTarget(
      name: "MillraceFilesTests", dependencies: ["MillraceFiles", "MillraceCore", "TestSystem"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceBenchTests",
      dependencies: [
        rtcLibrary, rtcWire, roomWire,
        "MillraceBench", "Millrace", "MillraceBailianDouble", "MillraceCore", "MillraceDoubles",
        "MillraceEngine", "MillraceGraph", "MillraceJSON", "MillraceNet", "MillraceVideo",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceRunnerTests",
      dependencies: [
        room, roomWire, "MillraceNet", "MillraceCrypto",
        "MillraceRunner", "Millrace", "MillraceDoubles", "MillraceConformance", "MillraceJSON",
        "MillraceDialog", "MillraceEngine", "MillraceGraph", "MillraceCore",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceFlowTests",
      dependencies: [
        "MillraceFlow", "MillraceTesting", "MillraceEngine", "MillraceGraph", "MillraceCore", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceAppTests",
      dependencies: [
        "MillraceFlow", "MillraceTesting", "MillraceEngine", "MillraceGraph", "MillraceCore", "CMallocCount",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceJSONTests", dependencies: ["MillraceJSON", "TestSystem"], swiftSettings: tests),
    .testTarget(
      name: "MillraceDialogTests",
      dependencies: [
        "MillraceDialog", "MillraceJSON", "MillraceTesting", "MillraceEngine", "MillraceGraph",
        "MillraceCore",
        "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceCryptoTests", dependencies: ["MillraceCrypto", "MillraceJSON"], swiftSettings: tests),
    .testTarget(
      name: "MillraceNetTests",
      dependencies: [
        "MillraceNet", "MillraceCore", "TestNet", "TestSystem",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ], swiftSettings: tests),
    .testTarget(
      name: "MillraceServerTests",
      dependencies: [
        "MillraceServer", "MillraceNet", "MillraceJSON", "MillraceDialog", "MillraceEngine", "MillraceGraph",
        "MillraceCore",
        "MillraceTesting",
        .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ], swiftSettings: tests),
    // Checked against another implementation of WebSockets by `make interop-net`.
    .executableTarget(
      name: "net-peer", dependencies: ["MillraceNet"], path: "Tests/NetPeer", swiftSettings: tests),
    .testTarget(
      name: "MillraceRoomWireTests", dependencies: ["MillraceRoomWire", "MillraceJSON"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceRoomTests",
      dependencies: [
        "MillraceRoom", "MillraceRoomWire", "MillraceRTC", "MillraceRTCWire", "MillraceNet", "MillraceCrypto",
        "MillraceCodecs", "MillraceRTCSound",
        "CMallocCount", "MillraceJSON", "MillraceCore", "TestNet", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(name: "MillraceRTCWireTests", dependencies: ["MillraceRTCWire"], swiftSettings: tests),
    .testTarget(
      name: "MillraceRTCTests",
      dependencies: ["MillraceRTC", "MillraceRTCWire", "MillraceCore", "CMallocCount", "CRtcShim"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceRTCSignalTests",
      dependencies: [
        "MillraceRTCSignal", "MillraceRTCWire", "MillraceRoomWire", "MillraceNet", "MillraceJSON",
        "MillraceDialog",
        "MillraceCore", "TestNet", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceRTCNodesTests",
      dependencies: [
        "MillraceRTCNodes", "MillraceRTC", "MillraceRTCSignal", "MillraceRTCWire", "MillraceRTCSound",
        "MillraceRoomWire", "MillraceRoom", "MillraceCodecs", "MillraceAudio", "MillraceDSP", "MillraceVideo",
        "MillraceFlow", "MillraceService", "MillraceNet",
        "MillraceCrypto", "MillraceJSON", "MillraceDialog", "MillraceTesting", "MillraceEngine",
        "MillraceGraph",
        "MillraceCore", "CMallocCount", "TestNet", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceServiceTests",
      dependencies: [
        "MillraceService", "MillraceNet", "MillraceDialog", "MillraceJSON", "MillraceTesting", "MillraceCore",
        "TestNet", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceWebSocketTests",
      dependencies: [
        "MillraceWebSocket", "MillraceNet", "MillraceDialog", "MillraceTesting", "MillraceEngine",
        "MillraceGraph", "MillraceCore", "TestNet",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceBailianTests",
      dependencies: [
        "MillraceBailian", "MillraceBailianDouble", "MillraceDoubles", "MillraceConformance", "MillraceNet",
        "MillraceJSON", "MillraceDialog", "MillraceTesting", "MillraceEngine", "MillraceGraph",
        "MillraceCore", "TestNet",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceIVHTests",
      dependencies: [
        "MillraceIVH", "MillraceIVHDouble", "MillraceDoubles", "MillraceConformance", "MillraceNet",
        "MillraceJSON", "MillraceDialog", "MillraceTesting", "MillraceEngine", "MillraceGraph",
        "MillraceCore", "MillraceAudio", "MillraceVideo", "MillraceDevices", "MillraceFlow", "TestMedia",
        "TestNet", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceTuyaTests",
      dependencies: [
        "MillraceTuya", "MillraceTuyaDouble", "MillraceDoubles", "MillraceConformance", "MillraceCrypto",
        "MillraceService", "MillraceNet", "MillraceJSON", "MillraceDialog", "MillraceTesting",
        "MillraceEngine", "MillraceGraph", "MillraceCore", "CMallocCount", "TestNet", "TestSystem",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceTuyaDoubleTests",
      dependencies: [
        "MillraceTuyaDouble", "MillraceDoubles", "MillraceConformance", "MillraceCrypto", "MillraceNet",
        "MillraceJSON", "MillraceDialog", "MillraceCore", "TestNet", "TestSystem",
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceDoublesTests",
      dependencies: [
        "MillraceDoubles", "MillraceConformance", "MillraceGraph", "MillraceJSON", "MillraceDialog",
        "MillraceNet",
        "MillraceCore",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceConformanceTests",
      dependencies: [
        "MillraceConformance", "MillraceBailian", "MillraceBailianDouble", "MillraceIVH",
        "MillraceIVHDouble", "MillraceTuya", "MillraceTuyaDouble", "MillraceWebSocket",
        "MillraceWebSocketDouble", "MillraceJSON", "MillraceDialog", "MillraceCore",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "EchoServiceTests",
      dependencies: [
        "EchoService", "MillraceConformance", "MillraceDoubles", "MillraceRunner", "MillraceService",
        "MillraceNet", "MillraceJSON", "MillraceDialog", "MillraceCore",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceTestingTests",
      dependencies: ["MillraceTesting", "MillraceEngine", "MillraceGraph", "MillraceCore"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceTests",
      dependencies: [
        "Millrace", "MillraceRunner", "MillraceJSON", "MillraceDialog", "MillraceVideo", "MillraceTesting",
        "MillraceDoubles", "MillraceBailianDouble", "MillraceIVHDouble", "MillraceTuyaDouble", "TestMedia",
        "TestSystem",
        "millrace",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceDevicesTests",
      dependencies: [
        "MillraceDevices", "MillraceAudio", "MillraceCore", "MillraceDSP", "MillraceEngine", "MillraceGraph",
        "MillraceTesting", "TestSystem", "CMallocCount",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceDeviceRigTests",
      dependencies: ["Millrace", "MillraceAudio", "MillraceDevices", "CMillraceKernels"],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceAudioTests",
      dependencies: [
        "MillraceAudio", "MillraceCore", "MillraceDSP", "MillraceTesting", "TestMedia", "TestSystem",
        "CFFmpeg",
        "CMediaShim", "CMallocCount",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MillraceVideoTests",
      dependencies: [
        "MillraceVideo", "MillraceAudio", "MillraceFiles", "MillraceCore", "MillraceEngine", "MillraceGraph",
        "MillraceTesting", "TestMedia", "TestSystem", "CTestLog", "CFFmpeg", "CMediaShim",
      ],
      swiftSettings: tests),
  ]
)

// MILLRACE_PARTS=NAME leaves the test targets of one row and what these need, so that what somebody works on builds in
// a fraction of the time. threads is what the thread sanitizer has to see: memory that threads share without a lock.
let parts: [String: [String]] = [
  "core": [
    "MillraceCoreTests", "MillraceGraphTests", "MillraceEngineTests", "MillraceTestingTests",
    "MillraceAppTests",
  ],
  "threads": [
    "MillraceCoreTests", "MillraceEngineTests", "MillraceTestingTests", "MillraceAppTests",
    "MillraceDevicesTests",
    "MillraceVideoTests",
  ],
  "codecs": ["MillraceCodecsTests", "MillraceDSPTests", "MillraceFilesTests", "CInteropTests"],
  "audio": ["MillraceAudioTests"],
  "crypto": ["MillraceCryptoTests"],
  "video": ["MillraceVideoTests"],
  "graphs": ["MillraceTests", "MillraceRunnerTests", "EchoServiceTests"],
  "devices": ["MillraceDevicesTests", "MillraceDeviceRigTests"],
  "net": [
    "MillraceJSONTests", "MillraceDialogTests", "MillraceNetTests", "MillraceServiceTests",
    "MillraceWebSocketTests", "MillraceBailianTests", "MillraceIVHTests", "MillraceTuyaTests",
    "MillraceTuyaDoubleTests", "MillraceDoublesTests", "MillraceConformanceTests", "net-peer",
  ],
  "service": ["MillraceJSONTests", "MillraceServiceTests"],
  "ivh": ["MillraceIVHTests", "MillraceServiceTests", "MillraceDialogTests", "MillraceVideoTests"],
  "tuya": [
    "MillraceTuyaTests", "MillraceTuyaDoubleTests", "MillraceServiceTests", "MillraceNetTests",
    "MillraceBailianTests", "MillraceIVHTests", "MillraceConformanceTests",
  ],
  "wires": ["MillraceNetTests"],
  "rtc": [
    "MillraceRTCWireTests", "MillraceRTCTests", "MillraceRTCSignalTests", "MillraceRTCNodesTests",
  ],
  "room": ["MillraceRoomWireTests", "MillraceRoomTests"],
  // What the thread sanitizer has to see of it.
  "sessions": ["MillraceRTCWireTests", "MillraceRTCTests"],
  "server": ["MillraceServerTests", "MillraceNetTests", "MillraceDialogTests"],
]
if let name = Context.environment["MILLRACE_PARTS"], !name.isEmpty {
  guard var open = parts[name] else {
    fatalError("MILLRACE_PARTS is \"\(name)\", and none of \(parts.keys.sorted().joined(separator: ", "))")
  }
  var targets: Set<String> = []
  var packages: Set<String> = []
  while let target = open.popLast() {
    guard targets.insert(target).inserted else { continue }
    for dependency in package.targets.first(where: { $0.name == target })?.dependencies ?? [] {
      switch dependency {
      case .targetItem(let name, _), .byNameItem(let name, _): open.append(name)
      case .productItem(_, let package, _, _): packages.insert(package ?? "")
      @unknown default: fatalError("\(target) has a dependency of a kind that MILLRACE_PARTS does not know")
      }
    }
  }
  package.targets.removeAll { !targets.contains($0.name) }
  package.products = package.targets.compactMap { target in
    target.type == .regular && target.name.hasPrefix("Millrace")
      ? .library(name: target.name, targets: [target.name]) : nil
  }
  package.dependencies.removeAll { dependency in
    guard case .sourceControl(_, let location, _) = dependency.kind else { return true }
    return !packages.contains { location.hasSuffix("/\($0)") }
  }
}

// MILLRACE_SANITIZE=undefined checks the C of this package for undefined behaviour: its targets, and the inline functions of its headers,
// which swiftc compiles. swiftc has no such option of its own on Linux; the functions that the checks call are in the library of
// AddressSanitizer, so this needs --sanitize=address.
if Context.environment["MILLRACE_SANITIZE"] == "undefined" {
  let checks = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
  for target in package.targets where target.type == .regular {
    if target.name.hasPrefix("CM") || target.name == "CRtcShim" {
      target.cSettings = (target.cSettings ?? []) + [.unsafeFlags(checks)]
    } else if target.name.hasPrefix("Millrace") {
      target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(checks.flatMap { ["-Xcc", $0] })]
    }
  }
}
