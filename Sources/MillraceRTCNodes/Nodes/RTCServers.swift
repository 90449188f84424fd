internal import MillraceRTC
internal import MillraceRTCSignal

/// STUN and TURN servers, from parameters and from signalling, to what ICE needs.
enum RTCServers {
  /// What is wrong with the address of a server; nil: nothing.
  static func problem(_ url: String) -> String? {
    do throws(RTCProblem) {
      _ = try ICEServerURL(parsing: url)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Resolves the names of servers; those that cannot be used are left out, and why is among the problems.
  static let resolve: RTCCallSettings.Resolver = resolver(ICEServerResolution.system)

  /// The same, with the names looked up otherwise.
  static func resolver(_ names: @escaping ICEServerResolution.Resolver) -> RTCCallSettings.Resolver {
    return { ice, servers, loop, done in
      var addresses: [ICEServerAddress] = []
      var problems: [String] = []
      for server in servers {
        do throws(RTCProblem) {
          let url = try ICEServerURL(parsing: server.url)
          addresses.append(ICEServerAddress(url, user: server.user, password: server.password))
        } catch {
          problems.append("\(error)")
        }
      }
      let unreadable = problems
      ICEServerResolution.settings(for: addresses, into: ice, on: loop, resolver: names) { result in
        done(
          result.map {
            RTCCallSettings.ResolvedServers(ice: $0.settings, problems: unreadable + $0.problems)
          })
      }
    }
  }
}
