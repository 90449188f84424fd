// ICE (RFC 8445) for one component: an agent of libnice. Everything on the loop's thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace_rtc_loop.h"

#pragma clang assume_nonnull begin

typedef struct millrace_ice millrace_ice;

typedef enum {
  millrace_ice_idle = 0,
  millrace_ice_checking = 1,
  /// A pair works; a better one may follow.
  millrace_ice_connected = 2,
  /// All checks are done.
  millrace_ice_ready = 3,
  millrace_ice_failed = 4,
} millrace_ice_state;

typedef enum {
  millrace_ice_turn_udp = 0,
  millrace_ice_turn_tcp = 1,
} millrace_ice_turn;

typedef struct {
  /// A candidate of this side was found, in the form of SDP: "candidate:…".
  void (*candidate)(void *_Nullable user, const char *candidate);
  /// All candidates of this side were found.
  void (*gathered)(void *_Nullable user);
  void (*changed)(void *_Nullable user, millrace_ice_state state);
  /// A datagram that is not ICE's own. The bytes may be changed in place, and are valid only during the call.
  void (*receive)(void *_Nullable user, uint8_t *bytes, size_t count);
  void *_Nullable user;
} millrace_ice_callbacks;

typedef struct {
  bool is_controlling;
  /// RFC 8445 section 2.5: host candidates only, and only answers to checks.
  bool is_lite;
  /// Only relayed candidates are used.
  bool is_relay_only;
  /// RFC 7675: the pair is checked again and again, and lost when the peer does not answer.
  bool has_consent;
} millrace_ice_options;

/// Creates an agent; null when libnice cannot.
millrace_ice *_Nullable millrace_ice_new(
    millrace_rtc_loop *loop, millrace_ice_options options, millrace_ice_callbacks callbacks);

/// Ends the agent and frees it. No callback follows; allocations at TURN servers are released in the background. Not within a callback.
void millrace_ice_free(millrace_ice *ice);

/// Uses this address of the machine, and no others than those that are added. False for what is no address.
bool millrace_ice_add_address(millrace_ice *ice, const char *address);

/// Uses ports of this range.
void millrace_ice_set_ports(millrace_ice *ice, uint16_t first, uint16_t last);

/// Asks this STUN server for its own address as the server sees it. An IP address.
void millrace_ice_set_stun(millrace_ice *ice, const char *address, uint16_t port);

/// Uses this TURN server. An IP address. False for what is no address.
bool millrace_ice_add_turn(
    millrace_ice *ice, const char *address, uint16_t port, const char *user, const char *password,
    millrace_ice_turn kind);

/// Begins to search candidates. False when there is no address of this machine to use.
bool millrace_ice_gather(millrace_ice *ice);

/// The user fragment and password of this side, each copied with its 0 into `room` bytes. False when they do not fit.
bool millrace_ice_local_credentials(millrace_ice *ice, char *fragment, char *password, size_t room);

/// False when libnice refuses them.
bool millrace_ice_set_remote_credentials(millrace_ice *ice, const char *fragment, const char *password);

/// Adds a candidate of the peer, in the form of SDP. False for one that libnice does not take.
bool millrace_ice_add_candidate(millrace_ice *ice, const char *candidate);

/// No more candidates of the peer follow.
void millrace_ice_end_candidates(millrace_ice *ice);

/// Begins again with new credentials of this side; the present pair is used until another works.
bool millrace_ice_restart(millrace_ice *ice);

/// Sends a datagram. False when it was not sent: there is no pair, or no room in the socket.
bool millrace_ice_send(millrace_ice *ice, const uint8_t *bytes, size_t count);

/// The role in which checks are made; the peer's may have decided it.
bool millrace_ice_is_controlling(millrace_ice *ice);

/// The pair in use as two candidates in the form of SDP, each copied with its 0 into `room` bytes. False while there is none.
bool millrace_ice_selected_pair(millrace_ice *ice, char *local, char *remote, size_t room);

/// Asks the peer for checks while there is no pair: sends one to each of its addresses, at most eight datagrams. False when nothing was
/// sent; always with `is_lite` and `is_relay_only`.
bool millrace_ice_check(millrace_ice *ice);

/// Asks the peer for a sign of life: sends a check over the pair in use, which every peer answers (RFC 8445 section 7.3). False when it was
/// not sent; never without `has_consent`.
bool millrace_ice_probe(millrace_ice *ice);

/// True when anything came over the pair in use since the last call, answers to checks included. Always false where the kernel does not
/// say: the pair is relayed, or was not in use at the last call.
bool millrace_ice_heard(millrace_ice *ice);

#pragma clang assume_nonnull end
