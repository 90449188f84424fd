// A UDP socket that a loop serves, for RTP without ICE. Everything on the loop's thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace_rtc_loop.h"

#pragma clang assume_nonnull begin

typedef struct millrace_datagram_socket millrace_datagram_socket;

/// An IP address and a port.
typedef struct {
  /// The 16 bytes of IPv6 as two numbers; the 4 bytes of IPv4 in the lower half of `low`.
  uint64_t high, low;
  /// The interface of a link-local address of IPv6; 0: none.
  uint32_t scope;
  uint16_t port;
  bool is_ipv6;
} millrace_datagram_address;

typedef struct {
  /// A datagram has come. The bytes may be changed in place, and are valid only during the call; the socket may be freed within it.
  void (*receive)(void *_Nullable user, uint8_t *bytes, size_t count, millrace_datagram_address source);
  void *_Nullable user;
} millrace_datagram_callbacks;

/// Reads an IP address such as "127.0.0.1", "::1" or "fe80::1%eth0". False for anything else.
bool millrace_datagram_parse(const char *host, uint16_t port, millrace_datagram_address *address);

/// Writes the address without the port, with its 0, into `room` bytes; 64 are enough.
void millrace_datagram_host(millrace_datagram_address address, char *text, size_t room);

/// Creates a socket that is bound to an address of this machine; port 0: any free one. Null with an `errno` when the system refuses.
millrace_datagram_socket *_Nullable millrace_datagram_new(
    millrace_rtc_loop *loop, millrace_datagram_address address, millrace_datagram_callbacks callbacks, int *error);

/// Closes the socket and frees it. No callback follows.
void millrace_datagram_free(millrace_datagram_socket *udp);

/// The address that it is bound to.
millrace_datagram_address millrace_datagram_local(const millrace_datagram_socket *udp);

/// Sends a datagram. False when it was not sent: no room in the socket, no way to the address.
bool millrace_datagram_send(
    millrace_datagram_socket *udp, const uint8_t *bytes, size_t count, millrace_datagram_address target);

#pragma clang assume_nonnull end
