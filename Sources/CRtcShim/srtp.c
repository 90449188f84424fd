#include "millrace_rtc_srtp.h"

#include <arpa/inet.h>
#include <limits.h>
#include <pthread.h>
#include <srtp2/srtp.h>
#include <stdlib.h>

// RTCP has an index besides.
const size_t millrace_srtp_trailer = SRTP_MAX_TRAILER_LEN + 4;

struct millrace_srtp {
  srtp_t session;
};

static srtp_err_status_t initialised;

static void initialise(void) { initialised = srtp_init(); }

bool millrace_srtp_sizes(int profile, size_t *key, size_t *salt) {
  switch (profile) {
    case srtp_profile_aes128_cm_sha1_80:
    case srtp_profile_aead_aes_128_gcm:
    case srtp_profile_aead_aes_256_gcm: break;
    default: return false;
  }
  *key = srtp_profile_get_master_key_length((srtp_profile_t)profile);
  *salt = srtp_profile_get_master_salt_length((srtp_profile_t)profile);
  return true;
}

millrace_srtp *millrace_srtp_new(int profile, const uint8_t *key, bool is_outbound, unsigned window) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialise);
  size_t key_count, salt_count;
  if (initialised != srtp_err_status_ok || !millrace_srtp_sizes(profile, &key_count, &salt_count)) return NULL;
  srtp_policy_t policy = {0};
  srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, (srtp_profile_t)profile);
  srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, (srtp_profile_t)profile);
  policy.ssrc.type = is_outbound ? ssrc_any_outbound : ssrc_any_inbound;
  policy.key = (unsigned char *)key;
  policy.window_size = window;
  // A retransmission without RTX is the same packet again, byte for byte, which reveals nothing. Another packet with its number would
  // reveal the key of GCM (RFC 7714 section 8.1): who sends must never make one.
  policy.allow_repeat_tx = is_outbound;
  millrace_srtp *srtp = calloc(1, sizeof *srtp);
  if (srtp != NULL && srtp_create(&srtp->session, &policy) == srtp_err_status_ok) return srtp;
  free(srtp);
  return NULL;
}

void millrace_srtp_free(millrace_srtp *srtp) {
  srtp_dealloc(srtp->session);
  free(srtp);
}

static millrace_srtp_status meaning(srtp_err_status_t status) {
  switch (status) {
    case srtp_err_status_ok: return millrace_srtp_ok;
    case srtp_err_status_replay_fail:
    case srtp_err_status_replay_old: return millrace_srtp_replayed;
    case srtp_err_status_auth_fail: return millrace_srtp_forged;
    case srtp_err_status_bad_param:
    case srtp_err_status_parse_err: return millrace_srtp_malformed;
    default: return millrace_srtp_failed;
  }
}

millrace_srtp_status millrace_srtp_protect(millrace_srtp *srtp, bool is_rtcp, uint8_t *bytes, size_t *count) {
  if (*count > INT_MAX - millrace_srtp_trailer) return millrace_srtp_malformed;
  int length = (int)*count;
  srtp_err_status_t status =
      is_rtcp ? srtp_protect_rtcp(srtp->session, bytes, &length) : srtp_protect(srtp->session, bytes, &length);
  *count = (size_t)length;
  return meaning(status);
}

millrace_srtp_status millrace_srtp_unprotect(millrace_srtp *srtp, bool is_rtcp, uint8_t *bytes, size_t *count) {
  if (*count > INT_MAX) return millrace_srtp_malformed;
  int length = (int)*count;
  srtp_err_status_t status =
      is_rtcp ? srtp_unprotect_rtcp(srtp->session, bytes, &length) : srtp_unprotect(srtp->session, bytes, &length);
  *count = status == srtp_err_status_ok ? (size_t)length : 0;
  return meaning(status);
}

void millrace_srtp_forget(millrace_srtp *srtp, uint32_t ssrc) {
  // libsrtp compares it as it is on the wire. A stream that is not there is none to forget.
  (void)srtp_remove_stream(srtp->session, htonl(ssrc));
}
