/// The reserved keys of a graph file, for the reader, the JSON Schema and the reference pages.
public enum GraphKeys {
  /// The version of the format, the value of `millrace`.
  public static let version = 1

  /// Keys of the root object.
  public static let graph = [
    "millrace", "name", "text", "comment", "clock", "onError", "memory", "parameters", "nodes", "links",
    "expose",
    "overload",
  ]
  /// Keys of an entry of `parameters`.
  public static let parameter = ["default", "type", "text", "comment"]
  /// Keys of a node that are not parameters of its type.
  public static let node = ["type", "lane", "onError", "budget", "maxAge", "endsWith", "comment"]
  /// Keys of a node of type `graph`.
  public static let include = ["type", "path", "set", "onError", "comment"]
  /// Keys of a step of `overload`.
  public static let overloadStep = ["above", "set", "shed", "refuse", "comment"]
  /// Keys of a link written as an object.
  public static let link = ["from", "to", "capacity", "whenFull", "comment"]
}
