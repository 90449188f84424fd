// SRTP (RFC 3711, RFC 7714) in one direction.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct millrace_srtp millrace_srtp;

typedef enum {
  millrace_srtp_ok = 0,
  /// It came before, or is older than the window.
  millrace_srtp_replayed = 1,
  /// The peer's keys did not make it.
  millrace_srtp_forged = 2,
  /// It is no packet of RTP or RTCP.
  millrace_srtp_malformed = 3,
  millrace_srtp_failed = 4,
} millrace_srtp_status;

/// Bytes that protection adds to a packet at most.
extern const size_t millrace_srtp_trailer;

/// The bytes of key and salt of a protection profile (RFC 5764 section 4.1.2); false for one that is not supported.
bool millrace_srtp_sizes(int profile, size_t *key, size_t *salt);

/// Creates a context for all streams of a direction; null for a profile that is not supported, or out of memory.
/// - key: the master key, followed by the salt.
/// - window: how many packets may come late, 64 to 32,767.
millrace_srtp *_Nullable millrace_srtp_new(int profile, const uint8_t *key, bool is_outbound, unsigned window);

void millrace_srtp_free(millrace_srtp *srtp);

/// Protects a packet of `*count` bytes in place, with room for `millrace_srtp_trailer` more behind it.
millrace_srtp_status millrace_srtp_protect(millrace_srtp *srtp, bool is_rtcp, uint8_t *bytes, size_t *count);

/// Checks and decrypts a packet in place.
millrace_srtp_status millrace_srtp_unprotect(millrace_srtp *srtp, bool is_rtcp, uint8_t *bytes, size_t *count);

/// Forgets a stream. An SSRC that comes again begins with any sequence number.
void millrace_srtp_forget(millrace_srtp *srtp, uint32_t ssrc);

#pragma clang assume_nonnull end
