internal import MillraceCore
internal import MillraceFiles
internal import MillraceGraph

/// A file that a command reads, claimed as long as this lives: what the command or a graph writes cannot take its place.
final class ReadingClaim {
  private let claim: FileClaim

  private init(_ path: String) throws(NodeProblem) { claim = try FileClaim(path, for: .reading) }

  /// Claims the files that graphs were read from. One that is being written now is told as a refusal: what was read of it may be half
  /// of what is meant.
  static func all(of plans: [GraphPlan]) throws -> [ReadingClaim] {
    do throws(NodeProblem) {
      var claims: [ReadingClaim] = []
      for file in Set(plans.flatMap(\.files)).sorted() { claims.append(try ReadingClaim(file)) }
      return claims
    } catch {
      GraphOptions.tell(Problems([Problem(error.text, hint: error.cure)]))
      throw ExitStatus.refused
    }
  }
}
