// DTLS 1.2 over datagrams that somebody else carries (RFC 6347), with keys for SRTP (RFC 5764). No socket, no clock of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct millrace_dtls_identity millrace_dtls_identity;
typedef struct millrace_dtls millrace_dtls;

typedef enum {
  millrace_dtls_handshaking = 0,
  millrace_dtls_connected = 1,
  /// The peer has sent close_notify.
  millrace_dtls_closed = 2,
  millrace_dtls_failed = 3,
} millrace_dtls_state;

/// Makes a key on the curve P-256 and a self-signed certificate for it, valid for 30 days; null when OpenSSL cannot. Takes about a
/// millisecond. May be used by connections of all threads.
millrace_dtls_identity *_Nullable millrace_dtls_identity_new(void);

void millrace_dtls_identity_free(millrace_dtls_identity *identity);

/// Writes the SHA-256 digest of the certificate, 32 bytes.
void millrace_dtls_identity_fingerprint(const millrace_dtls_identity *identity, uint8_t *digest);

/// What a connection calls, all within calls of the functions below.
typedef struct {
  /// A datagram is to be sent. That it is lost is no error.
  void (*send)(void *_Nullable user, const uint8_t *bytes, size_t count);
  /// The peer has sent application data.
  void (*receive)(void *_Nullable user, const uint8_t *bytes, size_t count);
  void *_Nullable user;
} millrace_dtls_callbacks;

/// Creates a connection; null when OpenSSL cannot. A client sends its first flight on `millrace_dtls_start`.
/// - mtu: bytes of the largest datagram.
millrace_dtls *_Nullable millrace_dtls_new(
    millrace_dtls_identity *identity, bool is_client, int mtu, millrace_dtls_callbacks callbacks);

void millrace_dtls_free(millrace_dtls *dtls);

/// Begins the handshake.
millrace_dtls_state millrace_dtls_start(millrace_dtls *dtls);

/// Handles a datagram of the peer. After the handshake, too: a repeated last flight of the peer is answered again only then.
millrace_dtls_state millrace_dtls_feed(millrace_dtls *dtls, const uint8_t *bytes, size_t count);

/// Reads what came together with the end of the handshake. To be called once when it has ended, after SCTP was begun: the peer's first packet
/// would find nobody otherwise.
millrace_dtls_state millrace_dtls_read(millrace_dtls *dtls);

/// Microseconds until `millrace_dtls_repeat` is due; -1: never.
int64_t millrace_dtls_due(millrace_dtls *dtls);

/// Sends the last flight again.
millrace_dtls_state millrace_dtls_repeat(millrace_dtls *dtls);

/// Sends application data of at most a datagram. False when it was not sent.
bool millrace_dtls_write(millrace_dtls *dtls, const uint8_t *bytes, size_t count);

/// Sends close_notify.
void millrace_dtls_close(millrace_dtls *dtls);

/// Writes the digest of the peer's certificate by the algorithm's name in SDP, such as "sha-256", into 64 bytes. Returns its length; 0
/// without a certificate, or when the algorithm is not known.
size_t millrace_dtls_peer_digest(millrace_dtls *dtls, const char *algorithm, uint8_t *digest);

/// The number of the SRTP protection profile that was agreed on (RFC 5764 section 4.1.2, RFC 7714 section 14.2); 0: none.
int millrace_dtls_srtp_profile(millrace_dtls *dtls);

/// Exports keys for SRTP. False before the handshake.
bool millrace_dtls_export(millrace_dtls *dtls, uint8_t *keys, size_t count);

/// Why it has failed, in OpenSSL's words. Valid until the next call for this connection.
const char *millrace_dtls_error(const millrace_dtls *dtls);

#pragma clang assume_nonnull end
