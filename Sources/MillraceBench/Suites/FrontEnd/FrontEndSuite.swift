/// The nodes between a microphone and a service, and between a service and a loudspeaker. One file per group of rows.
enum FrontEndSuite {
  static func run() throws -> [Figure] { try EchoRows.run() + VoiceRows.run() }
}
