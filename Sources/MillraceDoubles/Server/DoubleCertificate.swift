internal import Glibc
public import MillraceNet

/// A certificate for `localhost` and 127.0.0.1, valid until 2126, for doubles of services that are reached over TLS only.
///
/// It is its own authority: a client that has the file as its authorities (`NetTrust.file`, the parameter `roots` of nodes) verifies the
/// connection as it would any other. The files are in a temporary folder, and are removed with this object. The key protects nothing,
/// since everybody can read it here.
public final class DoubleCertificate: Sendable {
  /// The paths of the certificate and its key.
  public let identity: NetIdentity
  private let folder: String

  /// Writes the files.
  /// - Throws: why they cannot be written.
  public init() throws(DoubleProblem) {
    let given = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
    let parent = given.isEmpty ? "/tmp" : given
    var template = Array("\(parent)/millrace-double-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw .other("cannot create a folder in \"\(parent)\"; free some space there, or set TMPDIR")
    }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    identity = NetIdentity(certificate: folder + "/certificate.pem", key: folder + "/key.pem")
    try Self.write(Self.certificate, to: identity.certificate)
    try Self.write(Self.key, to: identity.key)
  }

  deinit {
    for path in [identity.certificate, identity.key] { unsafe unlink(path) }
    unsafe rmdir(folder)
  }

  private static func write(_ text: String, to path: String) throws(DoubleProblem) {
    let bytes = Array(text.utf8)
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    let count = unsafe Glibc.write(file, bytes, bytes.count)
    close(file)
    guard count == bytes.count else { throw .other("cannot write \"\(path)\"; free some space there") }
  }

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBPTCB5KADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBGVjaG8wIBcN
    MjQwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBGVjaG8w
    WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ9OrBQf8viYcvwA4wy5W58HYRl2jBf
    jTjuQKJ/aIn8YDsipqynpAOwWYZ5vAo0jTffjxk5e3GdIxmPutXf32gXoy8wLTAa
    BgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwDwYDVR0TAQH/BAUwAwEB/zAKBggq
    hkjOPQQDAgNIADBFAiBk8dwYL05r0dh1tmeg+N0v4Lx9A0+YVGVigGHs+1cWQAIh
    AKukcEYzPX2ePjbqktvfemmCcb9OC/fEtudOyUQ+EdXb
    -----END CERTIFICATE-----

    """

  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgALT2DPXGFYkmx81y
    qQFA5VgVapsfvQTF11AiXef8l0KhRANCAAQ9OrBQf8viYcvwA4wy5W58HYRl2jBf
    jTjuQKJ/aIn8YDsipqynpAOwWYZ5vAo0jTffjxk5e3GdIxmPutXf32gX
    -----END PRIVATE KEY-----

    """
}
