#if RTC
  import CMillraceSys
  import Glibc
  import MillraceCore
  import MillraceNet
  import MillraceRTC
  import MillraceRoom
  import MillraceRoomWire

  /// This program as the hub of a measurement. Descriptor 0 is a socket to the program that measures: it asks by single bytes, and gets
  /// lines with a number. When it is gone, the hub ends.
  enum RoomHubHost {
    /// Asks for the nanoseconds of processor time so far.
    static let work = UInt8(ascii: "w")
    /// Asks for the resident memory in KB, without what is free in the heap.
    static let memory = UInt8(ascii: "m")

    private static let patience: Nanoseconds = .milliseconds(30_000)

    /// Serves until the other end is gone.
    /// - Parameter setting: as `RoomSuite.hubVariable` says.
    static func serve(_ setting: String) throws {
      let server = try listen(try settings(setting))
      answer(server.port)
      while let question = next() {
        switch question {
        case work: answer(Int(millrace_process_cpu_ns()))
        case memory:
          releaseFreeMemory()
          answer(Int(try residentKilobytes()))
        default: break
        }
      }
      let stopped = Promise<Bool>()
      server.stop { stopped.fulfill(true) }
      _ = stopped.wait(patience)
    }

    private static func settings(_ setting: String) throws -> RoomServerSettings {
      let words = setting.split(separator: " ").map { String($0) }
      guard words.count == 2, let mode = RoomMediaMode(rawValue: words[0]) else {
        throw MeasurementProblem(
          "\(RoomSuite.hubVariable) is \"\(setting)\"; it is for the suite itself, unset it")
      }
      var settings = RoomServerSettings(port: 0)
      settings.admission = .loadTest
      settings.hasPage = false
      settings.hub = RoomHubSettings(media: mode)
      // All members come from one address, and many at once.
      settings.hub.membersPerRoom = 150
      settings.hub.connectionsPerAddress = 10_000
      settings.hub.joinsPerSecond = 10_000
      settings.hub.messageBytesPerSecond = 4_000_000
      settings.hub.requestsPerSecond = 1_000
      settings.forwarding.session.ice.addresses = [words[1]]
      settings.mixing.session.ice.addresses = [words[1]]
      return settings
    }

    private static func listen(_ settings: RoomServerSettings) throws -> RoomHubServer {
      let promise = Promise<Result<RoomHubServer, NetError>>()
      RoomHubServer.listen(settings, done: { promise.fulfill($0) })
      guard let result = promise.wait(patience) else { throw MeasurementProblem("the hub does not listen") }
      return try result.get()
    }

    // MARK: The other end

    /// The next question; nil: nobody asks any more.
    private static func next() -> UInt8? {
      var byte: UInt8 = 0
      while true {
        let count = unsafe read(0, &byte, 1)
        if count == 1 { return byte }
        guard count < 0, errno == EINTR else { return nil }
      }
    }

    private static func answer(_ number: Int) {
      let line = Array("\(number)\n".utf8)
      _ = unsafe write(0, line, line.count)
    }
  }
#endif
