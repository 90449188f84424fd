// SCTP over DTLS (RFC 8261) for data channels: an association of usrsctp. Packets come and go through the caller.
//
// usrsctp is one for the whole process. Its calls are made under a lock here, so that loops of several threads can have associations; what
// it sends is kept for the thread that the association belongs to.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct millrace_sctp millrace_sctp;

typedef struct {
  /// A packet is to be sent, within a call of the functions below.
  void (*send)(void *_Nullable user, const uint8_t *bytes, size_t count);
  /// The clock of another thread has made packets: `millrace_sctp_tick` is to be called soon. Any thread.
  void (*wake)(void *_Nullable user);
  void *_Nullable user;
} millrace_sctp_callbacks;

typedef enum {
  millrace_sctp_nothing = 0,
  /// Bytes of a message; a message of any size comes in parts that follow each other.
  millrace_sctp_data = 1,
  millrace_sctp_connected = 2,
  /// The association was refused, was lost or has ended.
  millrace_sctp_ended = 3,
  /// The peer has closed streams: their numbers are in the buffer, two bytes each, as the machine has them. None: all.
  millrace_sctp_streams_closed = 4,
  /// The rest of the message on a stream does not come: the peer has given it up.
  millrace_sctp_abandoned = 5,
} millrace_sctp_event;

typedef struct {
  uint16_t stream;
  uint32_t protocol;
  size_t count;
  bool is_end;
} millrace_sctp_part;

typedef struct {
  uint16_t stream;
  uint32_t protocol;
  bool is_unordered;
  /// How long, or how often, a message is sent again; both -1: until it has arrived. At most one of them is set.
  int64_t lifetime_ms;
  int64_t retransmissions;
} millrace_sctp_delivery;

typedef enum {
  millrace_sctp_sent = 0,
  /// No room now: to be tried again later.
  millrace_sctp_full = 1,
  /// Larger than the whole buffer.
  millrace_sctp_too_large = 2,
  millrace_sctp_unsent = 3,
} millrace_sctp_result;

/// Creates an association and sends its INIT: to be called when the handshake of DTLS has ended, before anything of the peer is read, whose
/// INIT would be answered by ABORT otherwise. Null when usrsctp cannot.
/// - packet: bytes of the largest packet.
/// - buffer: bytes that may wait in each direction.
millrace_sctp *_Nullable millrace_sctp_new(
    uint16_t local_port, uint16_t remote_port, uint16_t packet, uint32_t buffer, millrace_sctp_callbacks callbacks);

/// Ends the association at once, with an ABORT, and frees it.
void millrace_sctp_free(millrace_sctp *sctp);

/// Handles a packet of the peer.
void millrace_sctp_feed(millrace_sctp *sctp, const uint8_t *bytes, size_t count);

/// Advances the clock of all associations to the present, and sends what is due of this one. Every 10 ms.
void millrace_sctp_tick(millrace_sctp *sctp);

/// Reads what has come, of at most `room` bytes. What is not read makes the peer wait, after `buffer` bytes.
millrace_sctp_event millrace_sctp_read(millrace_sctp *sctp, uint8_t *bytes, size_t room, millrace_sctp_part *part);

/// Sends a message.
millrace_sctp_result millrace_sctp_send(
    millrace_sctp *sctp, const uint8_t *bytes, size_t count, millrace_sctp_delivery delivery);

/// Closes the outgoing half of a stream (RFC 6525), as data channels are closed.
bool millrace_sctp_close_stream(millrace_sctp *sctp, uint16_t stream);

#pragma clang assume_nonnull end
