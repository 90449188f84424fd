#include "millrace_rtc_dtls.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// RFC 7714 first: GCM is cheaper, and both ends of a call between Millraces have it.
static const char *const profiles = "SRTP_AEAD_AES_128_GCM:SRTP_AEAD_AES_256_GCM:SRTP_AES128_CM_SHA1_80";

// RFC 5764 section 4.2.
static const char export_label[] = "EXTRACTOR-dtls_srtp";

enum {
  // Of a certificate that is made when the program starts: a service may run for weeks, and a wrong clock is off by hours.
  day = 86400,
  valid_days = 30,
  // What OpenSSL reads at once: a datagram with several records.
  largest_record = 16384,
  // IPv4 and UDP.
  datagram_overhead = 28,
};

// The first flight again after 200 ms, then half as long again each time: the default of a second, doubled, is most of the time that a call
// takes to begin on a network that loses packets. OpenSSL gives up after the 12th time (`DTLS1_TMO_ALERT_COUNT`), here 16 s after the
// first: a peer that has no pair yet, and is silent, must not end the connection before its owner does.
enum { first_wait = 200000, longest_wait = 2000000 };

struct millrace_dtls_identity {
  SSL_CTX *context;
  uint8_t digest[32];
};

struct millrace_dtls {
  SSL *ssl;
  millrace_dtls_callbacks callbacks;
  // The datagram that is being handled.
  const uint8_t *input;
  size_t input_count;
  int mtu;
  millrace_dtls_state state;
  char error[160];
};

// MARK: The datagram BIO

static int bio_write(BIO *bio, const char *bytes, int count) {
  millrace_dtls *dtls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  dtls->callbacks.send(dtls->callbacks.user, (const uint8_t *)bytes, (size_t)count);
  return count;
}

static int bio_read(BIO *bio, char *bytes, int room) {
  millrace_dtls *dtls = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (dtls->input_count == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  int count = dtls->input_count < (size_t)room ? (int)dtls->input_count : room;
  memcpy(bytes, dtls->input, (size_t)count);
  // A datagram is read at once, or cut off.
  dtls->input_count = 0;
  return count;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)number;
  (void)pointer;
  switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_DGRAM_QUERY_MTU: return ((millrace_dtls *)BIO_get_data(bio))->mtu;
    case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: return datagram_overhead;
    default: return 0;
  }
}

static int bio_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

static BIO_METHOD *method;

static void make_method(void) {
  // Without this the library takes itself apart when the program ends, while other threads may still be talking.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "millrace");
  if (made == NULL) return;
  BIO_meth_set_write(made, bio_write);
  BIO_meth_set_read(made, bio_read);
  BIO_meth_set_ctrl(made, bio_control);
  BIO_meth_set_create(made, bio_create);
  method = made;
}

// MARK: The certificate

// Certificates of peers are self-signed: who they belong to is decided by the digest that came with the offer.
static int accept_certificate(int is_valid, X509_STORE_CTX *store) {
  (void)is_valid;
  (void)store;
  return 1;
}

static X509 *make_certificate(EVP_PKEY *key) {
  X509 *certificate = X509_new();
  if (certificate == NULL) return NULL;
  uint8_t serial[8];
  BIGNUM *number = NULL;
  X509_NAME *name = X509_get_subject_name(certificate);
  bool is_made = RAND_bytes(serial, sizeof serial) == 1 && (serial[0] &= 0x7f, serial[0] |= 1, true) &&
                 (number = BN_bin2bn(serial, sizeof serial, NULL)) != NULL &&
                 BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL &&
                 X509_set_version(certificate, X509_VERSION_3) == 1 &&
                 X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != NULL &&
                 X509_gmtime_adj(X509_getm_notAfter(certificate), (long)day * valid_days) != NULL &&
                 X509_set_pubkey(certificate, key) == 1 &&
                 X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"WebRTC", -1, -1, 0) == 1 &&
                 X509_set_issuer_name(certificate, name) == 1 && X509_sign(certificate, key, EVP_sha256()) != 0;
  BN_free(number);
  if (is_made) return certificate;
  X509_free(certificate);
  return NULL;
}

static SSL_CTX *make_context(EVP_PKEY *key, X509 *certificate) {
  SSL_CTX *context = SSL_CTX_new(DTLS_method());
  if (context == NULL) return NULL;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, accept_certificate);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  // The certificate of a second handshake would not be compared with the description, and no session is resumed: no tickets.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // It returns 0 on success.
  if (SSL_CTX_set_tlsext_use_srtp(context, profiles) == 0 &&
      SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) == 1 &&
      SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1) {
    return context;
  }
  SSL_CTX_free(context);
  return NULL;
}

millrace_dtls_identity *millrace_dtls_identity_new(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_method);
  millrace_dtls_identity *identity = calloc(1, sizeof *identity);
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = key == NULL ? NULL : make_certificate(key);
  unsigned count = 0;
  if (identity != NULL && method != NULL && certificate != NULL &&
      X509_digest(certificate, EVP_sha256(), identity->digest, &count) == 1) {
    identity->context = make_context(key, certificate);
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (identity != NULL && identity->context != NULL) return identity;
  free(identity);
  return NULL;
}

void millrace_dtls_identity_free(millrace_dtls_identity *identity) {
  SSL_CTX_free(identity->context);
  free(identity);
}

void millrace_dtls_identity_fingerprint(const millrace_dtls_identity *identity, uint8_t *digest) {
  memcpy(digest, identity->digest, sizeof identity->digest);
}

// MARK: A connection

static unsigned next_wait(SSL *ssl, unsigned wait) {
  (void)ssl;
  return wait == 0 ? first_wait : wait >= longest_wait / 3 * 2 ? longest_wait : wait / 2 * 3;
}

millrace_dtls *millrace_dtls_new(
    millrace_dtls_identity *identity, bool is_client, int mtu, millrace_dtls_callbacks callbacks) {
  millrace_dtls *dtls = calloc(1, sizeof *dtls);
  if (dtls == NULL) return NULL;
  dtls->callbacks = callbacks;
  dtls->mtu = mtu;
  dtls->ssl = SSL_new(identity->context);
  BIO *bio = dtls->ssl == NULL ? NULL : BIO_new(method);
  if (bio == NULL) {
    SSL_free(dtls->ssl);
    free(dtls);
    return NULL;
  }
  BIO_set_data(bio, dtls);
  SSL_set_bio(dtls->ssl, bio, bio);
  SSL_set_options(dtls->ssl, SSL_OP_NO_QUERY_MTU);
  SSL_set_mtu(dtls->ssl, mtu);
  DTLS_set_timer_cb(dtls->ssl, next_wait);
  if (is_client) SSL_set_connect_state(dtls->ssl); else SSL_set_accept_state(dtls->ssl);
  return dtls;
}

void millrace_dtls_free(millrace_dtls *dtls) {
  SSL_free(dtls->ssl);
  free(dtls);
}

static void note_failure(millrace_dtls *dtls) {
  unsigned long code = ERR_peek_last_error();
  const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
  strncpy(dtls->error, reason == NULL ? "unknown reason" : reason, sizeof dtls->error - 1);
  dtls->state = millrace_dtls_failed;
}

// The state after a call that returned `result`: whether the peer has closed, or something cannot be repaired.
static void judge(millrace_dtls *dtls, int result) {
  switch (SSL_get_error(dtls->ssl, result)) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: break;
    case SSL_ERROR_ZERO_RETURN: dtls->state = millrace_dtls_closed; break;
    default: note_failure(dtls);
  }
}

static millrace_dtls_state advance(millrace_dtls *dtls) {
  if (dtls->state == millrace_dtls_handshaking) {
    ERR_clear_error();
    int result = SSL_do_handshake(dtls->ssl);
    if (result != 1) {
      judge(dtls, result);
      return dtls->state;
    }
    dtls->state = millrace_dtls_connected;
  }
  return dtls->state;
}

// Reads what the datagram brought beyond the handshake.
static void read_data(millrace_dtls *dtls) {
  uint8_t bytes[largest_record];
  while (dtls->state == millrace_dtls_connected) {
    ERR_clear_error();
    int count = SSL_read(dtls->ssl, bytes, sizeof bytes);
    if (count <= 0) return judge(dtls, count);
    dtls->callbacks.receive(dtls->callbacks.user, bytes, (size_t)count);
  }
}

millrace_dtls_state millrace_dtls_start(millrace_dtls *dtls) { return advance(dtls); }

millrace_dtls_state millrace_dtls_feed(millrace_dtls *dtls, const uint8_t *bytes, size_t count) {
  if (dtls->state == millrace_dtls_closed || dtls->state == millrace_dtls_failed) return dtls->state;
  dtls->input = bytes;
  dtls->input_count = count;
  if (dtls->state == millrace_dtls_connected) read_data(dtls); else advance(dtls);
  dtls->input_count = 0;
  return dtls->state;
}

millrace_dtls_state millrace_dtls_read(millrace_dtls *dtls) {
  read_data(dtls);
  return dtls->state;
}

int64_t millrace_dtls_due(millrace_dtls *dtls) {
  struct timeval wait;
  if (dtls->state != millrace_dtls_handshaking || DTLSv1_get_timeout(dtls->ssl, &wait) != 1) return -1;
  return (int64_t)wait.tv_sec * 1000000 + wait.tv_usec;
}

millrace_dtls_state millrace_dtls_repeat(millrace_dtls *dtls) {
  if (dtls->state != millrace_dtls_handshaking) return dtls->state;
  ERR_clear_error();
  if (DTLSv1_handle_timeout(dtls->ssl) < 0) note_failure(dtls);
  return dtls->state;
}

bool millrace_dtls_write(millrace_dtls *dtls, const uint8_t *bytes, size_t count) {
  if (dtls->state != millrace_dtls_connected) return false;
  ERR_clear_error();
  return SSL_write(dtls->ssl, bytes, (int)count) > 0;
}

void millrace_dtls_close(millrace_dtls *dtls) {
  if (dtls->state != millrace_dtls_connected) return;
  ERR_clear_error();
  SSL_shutdown(dtls->ssl);
  dtls->state = millrace_dtls_closed;
}

// MARK: What was agreed on

size_t millrace_dtls_peer_digest(millrace_dtls *dtls, const char *algorithm, uint8_t *digest) {
  static const struct {
    const char *name;
    const EVP_MD *(*method)(void);
  } algorithms[] = {
      {"sha-256", EVP_sha256}, {"sha-1", EVP_sha1}, {"sha-224", EVP_sha224}, {"sha-384", EVP_sha384}, {"sha-512", EVP_sha512}};
  X509 *certificate = SSL_get0_peer_certificate(dtls->ssl);
  if (certificate == NULL) return 0;
  for (size_t index = 0; index < sizeof algorithms / sizeof *algorithms; index++) {
    if (strcasecmp(algorithm, algorithms[index].name) != 0) continue;
    unsigned count = 0;
    return X509_digest(certificate, algorithms[index].method(), digest, &count) == 1 ? count : 0;
  }
  return 0;
}

int millrace_dtls_srtp_profile(millrace_dtls *dtls) {
  const SRTP_PROTECTION_PROFILE *profile = SSL_get_selected_srtp_profile(dtls->ssl);
  return profile == NULL ? 0 : (int)profile->id;
}

bool millrace_dtls_export(millrace_dtls *dtls, uint8_t *keys, size_t count) {
  return SSL_export_keying_material(dtls->ssl, keys, count, export_label, sizeof export_label - 1, NULL, 0, 0) == 1;
}

const char *millrace_dtls_error(const millrace_dtls *dtls) { return dtls->error; }
