// recvmmsg.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "millrace_rtc_datagram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib-unix.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

enum {
  // Datagrams of a call: other members of the loop get their turn in between.
  batch = 16,
  // A jumbo frame. A longer datagram is dropped.
  largest_datagram = 9216,
  // What the kernel keeps, as far as it allows so much: a key frame of a megabit comes in one burst.
  buffer_bytes = 524288,
};

struct millrace_datagram_socket {
  int descriptor;
  bool is_ipv6;
  bool is_receiving;
  bool is_closed;
  GSource *source;
  millrace_datagram_callbacks callbacks;
  struct mmsghdr messages[batch];
  struct iovec vectors[batch];
  struct sockaddr_storage sources[batch];
  uint8_t bytes[batch][largest_datagram];
};

// MARK: Addresses

static uint64_t read_number(const uint8_t *bytes, int count) {
  uint64_t number = 0;
  for (int index = 0; index < count; index++) number = number << 8 | bytes[index];
  return number;
}

static void write_number(uint64_t number, uint8_t *bytes, int count) {
  for (int index = count - 1; index >= 0; index--, number >>= 8) bytes[index] = (uint8_t)number;
}

static millrace_datagram_address from_ipv4(const uint8_t *bytes, uint16_t port) {
  return (millrace_datagram_address){.low = read_number(bytes, 4), .port = port};
}

static millrace_datagram_address from_ipv6(const uint8_t *bytes, uint32_t scope, uint16_t port) {
  return (millrace_datagram_address){
      .high = read_number(bytes, 8), .low = read_number(bytes + 8, 8), .scope = scope, .port = port, .is_ipv6 = true};
}

bool millrace_datagram_parse(const char *host, uint16_t port, millrace_datagram_address *address) {
  uint8_t bytes[16];
  if (inet_pton(AF_INET, host, bytes) == 1) {
    *address = from_ipv4(bytes, port);
    return true;
  }
  char text[INET6_ADDRSTRLEN];
  const char *zone = strchr(host, '%');
  size_t count = zone == NULL ? strlen(host) : (size_t)(zone - host);
  if (count >= sizeof text) return false;
  memcpy(text, host, count);
  text[count] = 0;
  uint32_t scope = zone == NULL ? 0 : if_nametoindex(zone + 1);
  if ((zone != NULL && scope == 0) || inet_pton(AF_INET6, text, bytes) != 1) return false;
  *address = from_ipv6(bytes, scope, port);
  return true;
}

void millrace_datagram_host(millrace_datagram_address address, char *text, size_t room) {
  uint8_t bytes[16];
  char name[IF_NAMESIZE];
  text[0] = 0;
  if (!address.is_ipv6) {
    write_number(address.low, bytes, 4);
    inet_ntop(AF_INET, bytes, text, (socklen_t)room);
    return;
  }
  write_number(address.high, bytes, 8);
  write_number(address.low, bytes + 8, 8);
  inet_ntop(AF_INET6, bytes, text, (socklen_t)room);
  if (address.scope == 0 || if_indextoname(address.scope, name) == NULL) return;
  g_strlcat(text, "%", room);
  g_strlcat(text, name, room);
}

// As the system has it. On a socket of IPv6 an address of IPv4 is a mapped one (RFC 4291 section 2.5.5.2). 0: no way from this socket.
static socklen_t to_system(millrace_datagram_address address, bool is_ipv6, struct sockaddr_storage *system) {
  memset(system, 0, sizeof *system);
  if (!is_ipv6) {
    if (address.is_ipv6) return 0;
    struct sockaddr_in *target = (struct sockaddr_in *)system;
    target->sin_family = AF_INET;
    target->sin_port = htons(address.port);
    write_number(address.low, (uint8_t *)&target->sin_addr, 4);
    return sizeof *target;
  }
  struct sockaddr_in6 *target = (struct sockaddr_in6 *)system;
  uint8_t *bytes = target->sin6_addr.s6_addr;
  target->sin6_family = AF_INET6;
  target->sin6_port = htons(address.port);
  target->sin6_scope_id = address.scope;
  write_number(address.high, bytes, 8);
  write_number(address.low, bytes + 8, 8);
  if (!address.is_ipv6) bytes[10] = bytes[11] = 0xff;
  return sizeof *target;
}

static millrace_datagram_address from_system(const struct sockaddr_storage *system) {
  if (system->ss_family == AF_INET) {
    const struct sockaddr_in *source = (const struct sockaddr_in *)system;
    return from_ipv4((const uint8_t *)&source->sin_addr, ntohs(source->sin_port));
  }
  const struct sockaddr_in6 *source = (const struct sockaddr_in6 *)system;
  const uint8_t *bytes = source->sin6_addr.s6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&source->sin6_addr)) return from_ipv4(bytes + 12, ntohs(source->sin6_port));
  return from_ipv6(bytes, source->sin6_scope_id, ntohs(source->sin6_port));
}

// MARK: Receiving

static void prepare_messages(millrace_datagram_socket *udp) {
  for (int index = 0; index < batch; index++) {
    udp->vectors[index] = (struct iovec){.iov_base = udp->bytes[index], .iov_len = largest_datagram};
    udp->messages[index].msg_hdr = (struct msghdr){
        .msg_name = &udp->sources[index], .msg_namelen = sizeof udp->sources[index], .msg_iov = &udp->vectors[index],
        .msg_iovlen = 1};
  }
}

static gboolean on_readable(gint descriptor, GIOCondition condition, gpointer user) {
  (void)condition;
  millrace_datagram_socket *udp = user;
  prepare_messages(udp);
  int count = recvmmsg(descriptor, udp->messages, batch, MSG_DONTWAIT, NULL);
  udp->is_receiving = true;
  for (int index = 0; index < count && !udp->is_closed; index++) {
    const struct mmsghdr *message = &udp->messages[index];
    if ((message->msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
    udp->callbacks.receive(
        udp->callbacks.user, udp->bytes[index], message->msg_len, from_system(&udp->sources[index]));
  }
  udp->is_receiving = false;
  if (!udp->is_closed) return G_SOURCE_CONTINUE;
  g_free(udp);
  return G_SOURCE_REMOVE;
}

// MARK: Life

static bool open_socket(millrace_datagram_socket *udp, millrace_datagram_address address) {
  int family = address.is_ipv6 ? AF_INET6 : AF_INET;
  udp->descriptor = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (udp->descriptor < 0) return false;
  const int off = 0, size = buffer_bytes;
  if (address.is_ipv6) setsockopt(udp->descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  setsockopt(udp->descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(udp->descriptor, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  struct sockaddr_storage local;
  socklen_t count = to_system(address, address.is_ipv6, &local);
  return bind(udp->descriptor, (const struct sockaddr *)&local, count) == 0;
}

millrace_datagram_socket *millrace_datagram_new(
    millrace_rtc_loop *loop, millrace_datagram_address address, millrace_datagram_callbacks callbacks, int *error) {
  millrace_datagram_socket *udp = g_new0(millrace_datagram_socket, 1);
  udp->callbacks = callbacks;
  udp->is_ipv6 = address.is_ipv6;
  if (!open_socket(udp, address)) {
    *error = errno;
    if (udp->descriptor >= 0) close(udp->descriptor);
    g_free(udp);
    return NULL;
  }
  udp->source = g_unix_fd_source_new(udp->descriptor, G_IO_IN);
  g_source_set_callback(udp->source, G_SOURCE_FUNC(on_readable), udp, NULL);
  g_source_attach(udp->source, millrace_rtc_loop_context(loop));
  return udp;
}

void millrace_datagram_free(millrace_datagram_socket *udp) {
  g_source_destroy(udp->source);
  g_source_unref(udp->source);
  close(udp->descriptor);
  udp->is_closed = true;
  // Within `receive`, its caller frees it.
  if (!udp->is_receiving) g_free(udp);
}

millrace_datagram_address millrace_datagram_local(const millrace_datagram_socket *udp) {
  struct sockaddr_storage local = {0};
  socklen_t count = sizeof local;
  if (getsockname(udp->descriptor, (struct sockaddr *)&local, &count) != 0) return (millrace_datagram_address){0};
  return from_system(&local);
}

bool millrace_datagram_send(
    millrace_datagram_socket *udp, const uint8_t *bytes, size_t count, millrace_datagram_address target) {
  struct sockaddr_storage system;
  socklen_t length = to_system(target, udp->is_ipv6, &system);
  if (length == 0) return false;
  return sendto(udp->descriptor, bytes, count, MSG_DONTWAIT, (const struct sockaddr *)&system, length) == (ssize_t)count;
}
