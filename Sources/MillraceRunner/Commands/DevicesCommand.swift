#if Devices
  internal import ArgumentParser
  internal import MillraceDevices
  internal import MillraceGraph

  /// `devices`: lists the microphones and loudspeakers of this machine, with the names that graphs use.
  struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "devices", abstract: "Lists the audio devices that graphs can record from and play to.",
      discussion: """
        The first column is a value for the parameter "device" of audio.capture and audio.play. An asterisk marks the default device.
        """)

    @Flag(name: .long, help: "Print JSON.")
    var json = false

    func run() throws {
      let devices = AudioDeviceList.all()
      Output.standard.write(json ? Self.json(devices) : Self.table(devices, Output.standard.style))
    }

    static func json(_ devices: [AudioDeviceList.Device]) -> String {
      var json = JSONWriter(pretty: true)
      json.array { json in
        for device in devices {
          json.object { json in
            json.member("device", device.device)
            json.member("text", device.text)
            json.member("records", device.records)
            json.member("plays", device.plays)
            json.member("default", device.isDefault)
            if device.rate > 0 { json.member("rate", device.rate) }
            if device.channels > 0 { json.member("channels", device.channels) }
          }
        }
      }
      return json.text + "\n"
    }

    static func table(_ devices: [AudioDeviceList.Device], _ style: TerminalStyle) -> String {
      let name = (devices.map { TerminalStyle.columns(of: $0.device) }.max() ?? 0) + 2
      var lines: [String] = []
      for (title, members) in [
        ("microphones", devices.filter(\.records)), ("loudspeakers", devices.filter(\.plays)),
      ] {
        if !lines.isEmpty { lines.append("") }
        lines.append(style.paint(title, .heading))
        for device in members {
          let gap = String(repeating: " ", count: name - TerminalStyle.columns(of: device.device))
          var words = device.text
          if device.rate > 0 { words += " (\(device.rate) Hz, \(device.channels) ch)" }
          let mark = device.isDefault ? "*" : " "
          lines.append("\(mark) \(style.paint(device.device, .bold))\(gap)\(words)")
        }
      }
      return lines.joined(separator: "\n") + "\n"
    }
  }
#endif
