#include "millrace_rtc_sctp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <usrsctp.h>

// RFC 8831 section 6.2: as many streams as there are numbers for, but memory is taken for each.
enum { streams = 1024 };
// Packets that wait to be sent. Further packets are dropped, and SCTP sends them again.
enum { largest_queue = 4096 };

typedef struct packet {
  struct packet *next;
  size_t count;
  uint8_t bytes[];
} packet;

struct millrace_sctp {
  // What usrsctp knows the association by. It may still send for one that was freed.
  uintptr_t number;
  millrace_sctp *next;
  struct socket *socket;
  millrace_sctp_callbacks callbacks;
  pthread_t owner;
  packet *first, *last;
  size_t waiting;
};

// Guards usrsctp, and the queues of all associations.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t clock_ms;
static millrace_sctp *associations;
static uintptr_t last_number;

static int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// MARK: Outgoing packets

static millrace_sctp *find(uintptr_t number) {
  millrace_sctp *sctp = associations;
  while (sctp != NULL && sctp->number != number) sctp = sctp->next;
  return sctp;
}

// Called by usrsctp, so with the lock held.
static int queue_packet(void *address, void *bytes, size_t count, uint8_t service, uint8_t is_whole) {
  (void)service;
  (void)is_whole;
  millrace_sctp *sctp = find((uintptr_t)address);
  if (sctp == NULL) return 0;
  packet *added = sctp->waiting < largest_queue ? malloc(sizeof *added + count) : NULL;
  if (added == NULL) return 0;
  *added = (packet){.count = count};
  memcpy(added->bytes, bytes, count);
  if (sctp->last == NULL) sctp->first = added; else sctp->last->next = added;
  sctp->last = added;
  sctp->waiting++;
  if (!pthread_equal(sctp->owner, pthread_self())) sctp->callbacks.wake(sctp->callbacks.user);
  return 0;
}

static packet *take_packets(millrace_sctp *sctp) {
  packet *first = sctp->first;
  sctp->first = sctp->last = NULL;
  sctp->waiting = 0;
  return first;
}

static void free_packets(packet *first) {
  while (first != NULL) {
    packet *next = first->next;
    free(first);
    first = next;
  }
}

// Gives up the lock, and sends what was queued meanwhile.
static void unlock_and_send(millrace_sctp *sctp) {
  packet *first = take_packets(sctp);
  pthread_mutex_unlock(&lock);
  for (packet *each = first; each != NULL; each = each->next) {
    sctp->callbacks.send(sctp->callbacks.user, each->bytes, each->count);
  }
  free_packets(first);
}

// MARK: Life

static void initialise(void) {
  usrsctp_init_nothreads(0, queue_packet, NULL);
  // There is no IP header to mark (RFC 8261 section 5).
  usrsctp_sysctl_set_sctp_ecn_enable(0);
  usrsctp_sysctl_set_sctp_asconf_enable(0);
  usrsctp_sysctl_set_sctp_auth_enable(0);
  usrsctp_sysctl_set_sctp_nr_outgoing_streams_default(streams);
  clock_ms = now_ms();
}

// The time of all associations: also before one is made, whose first timer counts from here.
static void advance_clock(void) {
  int64_t now = now_ms();
  if (now > clock_ms) usrsctp_handle_timers((uint32_t)(now - clock_ms));
  clock_ms = now;
}

static bool set(struct socket *socket, int level, int option, const void *value, socklen_t count) {
  return usrsctp_setsockopt(socket, level, option, value, count) == 0;
}

static bool subscribe(struct socket *socket, uint16_t type) {
  struct sctp_event event = {.se_assoc_id = SCTP_ALL_ASSOC, .se_type = type, .se_on = 1};
  return set(socket, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event);
}

static bool configure(struct socket *socket, uint16_t packet_bytes, uint32_t buffer) {
  const int on = 1, size = (int)buffer;
  // Closed by an ABORT: nothing waits for the peer's consent.
  const struct linger linger = {.l_onoff = 1, .l_linger = 0};
  const struct sctp_assoc_value resets = {.assoc_id = SCTP_ALL_ASSOC, .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ};
  const struct sctp_initmsg limits = {.sinit_num_ostreams = streams, .sinit_max_instreams = streams};
  struct sctp_paddrparams path = {.spp_flags = SPP_PMTUD_DISABLE, .spp_pathmtu = packet_bytes};
  return usrsctp_set_non_blocking(socket, 1) == 0 && set(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) &&
         set(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) && set(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) &&
         set(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) &&
         set(socket, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) &&
         set(socket, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &resets, sizeof resets) &&
         set(socket, IPPROTO_SCTP, SCTP_INITMSG, &limits, sizeof limits) &&
         set(socket, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) &&
         subscribe(socket, SCTP_ASSOC_CHANGE) && subscribe(socket, SCTP_STREAM_RESET_EVENT) &&
         subscribe(socket, SCTP_PARTIAL_DELIVERY_EVENT);
}

static struct sockaddr_conn address_of(millrace_sctp *sctp, uint16_t port) {
  return (struct sockaddr_conn){
      .sconn_family = AF_CONN, .sconn_port = htons(port), .sconn_addr = (void *)sctp->number};
}

static bool open_socket(
    millrace_sctp *sctp, uint16_t local_port, uint16_t remote_port, uint16_t packet_bytes, uint32_t buffer) {
  sctp->socket = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
  if (sctp->socket == NULL) return false;
  struct sockaddr_conn local = address_of(sctp, local_port), remote = address_of(sctp, remote_port);
  return configure(sctp->socket, packet_bytes, buffer) &&
         usrsctp_bind(sctp->socket, (struct sockaddr *)&local, sizeof local) == 0 &&
         (usrsctp_connect(sctp->socket, (struct sockaddr *)&remote, sizeof remote) == 0 || errno == EINPROGRESS);
}

// Its last packet, an ABORT, is queued.
static void leave(millrace_sctp *sctp) {
  if (sctp->socket != NULL) usrsctp_close(sctp->socket);
  usrsctp_deregister_address((void *)sctp->number);
  millrace_sctp **place = &associations;
  while (*place != sctp) place = &(*place)->next;
  *place = sctp->next;
}

static void enter(millrace_sctp *sctp) {
  sctp->number = ++last_number;
  sctp->next = associations;
  associations = sctp;
  usrsctp_register_address((void *)sctp->number);
}

millrace_sctp *millrace_sctp_new(
    uint16_t local_port, uint16_t remote_port, uint16_t packet_bytes, uint32_t buffer,
    millrace_sctp_callbacks callbacks) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialise);
  millrace_sctp *sctp = calloc(1, sizeof *sctp);
  if (sctp == NULL) return NULL;
  sctp->callbacks = callbacks;
  sctp->owner = pthread_self();
  pthread_mutex_lock(&lock);
  advance_clock();
  enter(sctp);
  if (open_socket(sctp, local_port, remote_port, packet_bytes, buffer)) {
    unlock_and_send(sctp);
    return sctp;
  }
  leave(sctp);
  free_packets(take_packets(sctp));
  pthread_mutex_unlock(&lock);
  free(sctp);
  return NULL;
}

void millrace_sctp_free(millrace_sctp *sctp) {
  pthread_mutex_lock(&lock);
  leave(sctp);
  unlock_and_send(sctp);
  free(sctp);
}

// MARK: Packets and messages

void millrace_sctp_feed(millrace_sctp *sctp, const uint8_t *bytes, size_t count) {
  pthread_mutex_lock(&lock);
  usrsctp_conninput((void *)sctp->number, bytes, count, 0);
  unlock_and_send(sctp);
}

void millrace_sctp_tick(millrace_sctp *sctp) {
  pthread_mutex_lock(&lock);
  advance_clock();
  unlock_and_send(sctp);
}

static millrace_sctp_event change(const struct sctp_assoc_change *change) {
  switch (change->sac_state) {
    case SCTP_COMM_UP:
    case SCTP_RESTART: return millrace_sctp_connected;
    default: return millrace_sctp_ended;
  }
}

// The streams of a notification, at the beginning of the buffer that holds it.
static millrace_sctp_event reset(uint8_t *bytes, millrace_sctp_part *part) {
  const struct sctp_stream_reset_event *event = (const struct sctp_stream_reset_event *)bytes;
  if ((event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN) == 0) return millrace_sctp_nothing;
  if (event->strreset_length < sizeof *event) return millrace_sctp_nothing;
  part->count = event->strreset_length - sizeof *event;
  memmove(bytes, event->strreset_stream_list, part->count);
  return millrace_sctp_streams_closed;
}

static millrace_sctp_event notice(uint8_t *bytes, size_t count, millrace_sctp_part *part) {
  const union sctp_notification *notification = (const union sctp_notification *)bytes;
  if (count < sizeof notification->sn_header || notification->sn_header.sn_length > count) return millrace_sctp_nothing;
  switch (notification->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE: return change(&notification->sn_assoc_change);
    case SCTP_STREAM_RESET_EVENT: return reset(bytes, part);
    case SCTP_PARTIAL_DELIVERY_EVENT:
      part->stream = (uint16_t)notification->sn_pdapi_event.pdapi_stream;
      return millrace_sctp_abandoned;
    default: return millrace_sctp_nothing;
  }
}

millrace_sctp_event millrace_sctp_read(millrace_sctp *sctp, uint8_t *bytes, size_t room, millrace_sctp_part *part) {
  for (;;) {
    struct sctp_rcvinfo info = {0};
    socklen_t address_count = 0, info_count = sizeof info;
    unsigned kind = 0;
    int flags = 0;
    *part = (millrace_sctp_part){0};
    pthread_mutex_lock(&lock);
    ssize_t count =
        usrsctp_recvv(sctp->socket, bytes, room, NULL, &address_count, &info, &info_count, &kind, &flags);
    int problem = errno;
    unlock_and_send(sctp);
    if (count < 0) return problem == EAGAIN || problem == EWOULDBLOCK ? millrace_sctp_nothing : millrace_sctp_ended;
    if ((flags & MSG_NOTIFICATION) != 0) {
      millrace_sctp_event event = notice(bytes, (size_t)count, part);
      if (event == millrace_sctp_nothing) continue;
      return event;
    }
    // SCTP has no empty messages: the socket is at its end. (usrsctp gives information of a message even then.)
    if (count == 0) return millrace_sctp_ended;
    *part = (millrace_sctp_part){
        .stream = info.rcv_sid, .protocol = ntohl(info.rcv_ppid), .count = (size_t)count, .is_end = (flags & MSG_EOR) != 0};
    return millrace_sctp_data;
  }
}

millrace_sctp_result millrace_sctp_send(
    millrace_sctp *sctp, const uint8_t *bytes, size_t count, millrace_sctp_delivery delivery) {
  struct sctp_sendv_spa info = {.sendv_flags = SCTP_SEND_SNDINFO_VALID};
  info.sendv_sndinfo.snd_sid = delivery.stream;
  info.sendv_sndinfo.snd_ppid = htonl(delivery.protocol);
  info.sendv_sndinfo.snd_flags = delivery.is_unordered ? SCTP_UNORDERED : 0;
  if (delivery.lifetime_ms >= 0 || delivery.retransmissions >= 0) {
    bool has_lifetime = delivery.lifetime_ms >= 0;
    info.sendv_flags |= SCTP_SEND_PRINFO_VALID;
    info.sendv_prinfo.pr_policy = has_lifetime ? SCTP_PR_SCTP_TTL : SCTP_PR_SCTP_RTX;
    info.sendv_prinfo.pr_value = (uint32_t)(has_lifetime ? delivery.lifetime_ms : delivery.retransmissions);
  }
  pthread_mutex_lock(&lock);
  ssize_t sent = usrsctp_sendv(sctp->socket, bytes, count, NULL, 0, &info, sizeof info, SCTP_SENDV_SPA, 0);
  int problem = errno;
  unlock_and_send(sctp);
  if (sent >= 0) return millrace_sctp_sent;
  switch (problem) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case ENOBUFS: return millrace_sctp_full;
    case EMSGSIZE: return millrace_sctp_too_large;
    default: return millrace_sctp_unsent;
  }
}

bool millrace_sctp_close_stream(millrace_sctp *sctp, uint16_t stream) {
  union {
    struct sctp_reset_streams request;
    uint8_t bytes[sizeof(struct sctp_reset_streams) + sizeof(uint16_t)];
  } request = {.request = {.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1}};
  memcpy(request.request.srs_stream_list, &stream, sizeof stream);
  pthread_mutex_lock(&lock);
  bool is_done = usrsctp_setsockopt(
                     sctp->socket, IPPROTO_SCTP, SCTP_RESET_STREAMS, &request, sizeof(struct sctp_reset_streams) + 2) == 0;
  unlock_and_send(sctp);
  return is_done;
}
