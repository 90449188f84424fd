#include "millrace_rtc_ice.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <string.h>
#include <stun/stunagent.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "internal.h"

enum {
  component = 1,
  // RFC 8445 section 5.3: at most 256 characters.
  credential_room = 257,
  // Datagrams of `millrace_ice_check`.
  most_checks = 8,
};

// Milliseconds between two checks: the least that RFC 8445 section 14.2 allows. libnice's own 20 ms are most of the time that a call on a
// quiet network takes to begin.
static const guint pacing = 5;
// Milliseconds until a request to a STUN server is sent again. Checks wait for at least 500 ms, whatever is set (libnice 0.1.21), then twice
// as long each time.
static const guint first_timeout = 200;
// How often a request is sent. libnice's own 3 give a check up after 3.5 s, and with it the connection: 4 % of calls at 5 % loss in
// bursts. RFC 8489 section 6.2.1 has 7.
static const guint most_requests = 8;

struct millrace_ice {
  millrace_rtc_loop *loop;
  NiceAgent *agent;
  guint stream;
  millrace_ice_callbacks callbacks;
  bool has_consent;
  // It sends checks, from this machine's own addresses.
  bool checks;
  // Of the checks that this file sends (RFC 8445 section 16.1).
  uint64_t tie_breaker;
  char remote_fragment[credential_room], remote_password[credential_room];
  // The socket whose traffic is watched, and when something was last read from it.
  int watched;
  struct timeval stamp;
};

// MARK: Signals

static void on_candidate(NiceAgent *agent, NiceCandidate *candidate, gpointer user) {
  millrace_ice *ice = user;
  gchar *text = nice_agent_generate_local_candidate_sdp(agent, candidate);
  if (text == NULL) return;
  ice->callbacks.candidate(ice->callbacks.user, g_str_has_prefix(text, "a=") ? text + 2 : text);
  g_free(text);
}

static void on_gathered(NiceAgent *agent, guint stream, gpointer user) {
  (void)agent;
  (void)stream;
  millrace_ice *ice = user;
  ice->callbacks.gathered(ice->callbacks.user);
}

static millrace_ice_state meaning(guint state) {
  switch (state) {
    case NICE_COMPONENT_STATE_GATHERING:
    case NICE_COMPONENT_STATE_CONNECTING: return millrace_ice_checking;
    case NICE_COMPONENT_STATE_CONNECTED: return millrace_ice_connected;
    case NICE_COMPONENT_STATE_READY: return millrace_ice_ready;
    case NICE_COMPONENT_STATE_FAILED: return millrace_ice_failed;
    default: return millrace_ice_idle;
  }
}

static void on_state(NiceAgent *agent, guint stream, guint number, guint state, gpointer user) {
  (void)agent;
  (void)stream;
  (void)number;
  millrace_ice *ice = user;
  ice->callbacks.changed(ice->callbacks.user, meaning(state));
}

static void on_datagram(NiceAgent *agent, guint stream, guint number, guint count, gchar *bytes, gpointer user) {
  (void)agent;
  (void)stream;
  (void)number;
  millrace_ice *ice = user;
  ice->callbacks.receive(ice->callbacks.user, (uint8_t *)bytes, count);
}

// MARK: Life

millrace_ice *millrace_ice_new(
    millrace_rtc_loop *loop, millrace_ice_options options, millrace_ice_callbacks callbacks) {
  GMainContext *context = millrace_rtc_loop_context(loop);
  NiceAgentOption flags = NICE_AGENT_OPTION_REGULAR_NOMINATION | NICE_AGENT_OPTION_ICE_TRICKLE;
  if (options.is_lite) flags |= NICE_AGENT_OPTION_LITE_MODE;
  if (options.has_consent) flags |= NICE_AGENT_OPTION_CONSENT_FRESHNESS;
  NiceAgent *agent = nice_agent_new_full(context, NICE_COMPATIBILITY_RFC5245, flags);
  if (agent == NULL) return NULL;
  g_object_set(
      agent, "upnp", FALSE, "ice-tcp", FALSE, "controlling-mode", (gboolean)options.is_controlling, "force-relay",
      (gboolean)options.is_relay_only, "stun-pacing-timer", pacing, "stun-initial-timeout", first_timeout,
      "stun-max-retransmissions", most_requests, NULL);
  millrace_ice *ice = g_new0(millrace_ice, 1);
  ice->loop = loop;
  ice->agent = agent;
  ice->callbacks = callbacks;
  ice->has_consent = options.has_consent;
  ice->checks = !options.is_lite && !options.is_relay_only;
  ice->tie_breaker = (uint64_t)g_random_int() << 32 | g_random_int();
  ice->watched = -1;
  ice->stream = nice_agent_add_stream(agent, 1);
  if (ice->stream == 0) {
    g_object_unref(agent);
    g_free(ice);
    return NULL;
  }
  g_signal_connect(agent, "new-candidate-full", G_CALLBACK(on_candidate), ice);
  g_signal_connect(agent, "candidate-gathering-done", G_CALLBACK(on_gathered), ice);
  g_signal_connect(agent, "component-state-changed", G_CALLBACK(on_state), ice);
  nice_agent_attach_recv(agent, ice->stream, component, context, on_datagram, ice);
  return ice;
}

// The answers of TURN servers are read only while something is attached.
static void ignore_datagram(
    NiceAgent *agent, guint stream, guint number, guint count, gchar *bytes, gpointer user) {
  (void)agent;
  (void)stream;
  (void)number;
  (void)count;
  (void)bytes;
  (void)user;
}

static void on_closed(GObject *agent, GAsyncResult *result, gpointer user) {
  (void)result;
  g_object_unref(agent);
  millrace_rtc_loop_end_close(user);
}

void millrace_ice_free(millrace_ice *ice) {
  g_signal_handlers_disconnect_by_data(ice->agent, ice);
  GMainContext *context = millrace_rtc_loop_context(ice->loop);
  nice_agent_attach_recv(ice->agent, ice->stream, component, context, ignore_datagram, NULL);
  // The agent is released when its TURN servers have answered, or do not.
  millrace_rtc_loop_begin_close(ice->loop);
  nice_agent_close_async(ice->agent, on_closed, ice->loop);
  g_free(ice);
}

// MARK: Addresses and servers

bool millrace_ice_add_address(millrace_ice *ice, const char *text) {
  NiceAddress address;
  nice_address_init(&address);
  return nice_address_set_from_string(&address, text) && nice_agent_add_local_address(ice->agent, &address);
}

void millrace_ice_set_ports(millrace_ice *ice, uint16_t first, uint16_t last) {
  nice_agent_set_port_range(ice->agent, ice->stream, component, first, last);
}

void millrace_ice_set_stun(millrace_ice *ice, const char *address, uint16_t port) {
  g_object_set(ice->agent, "stun-server", address, "stun-server-port", (guint)port, NULL);
}

bool millrace_ice_add_turn(
    millrace_ice *ice, const char *address, uint16_t port, const char *user, const char *password,
    millrace_ice_turn kind) {
  NiceRelayType type = kind == millrace_ice_turn_tcp ? NICE_RELAY_TYPE_TURN_TCP : NICE_RELAY_TYPE_TURN_UDP;
  return nice_agent_set_relay_info(ice->agent, ice->stream, component, address, port, user, password, type);
}

bool millrace_ice_gather(millrace_ice *ice) { return nice_agent_gather_candidates(ice->agent, ice->stream); }

// MARK: The two sides

static bool copy(char *target, const gchar *text, size_t room) { return g_strlcpy(target, text, room) < room; }

bool millrace_ice_local_credentials(millrace_ice *ice, char *fragment, char *password, size_t room) {
  gchar *own_fragment = NULL, *own_password = NULL;
  if (!nice_agent_get_local_credentials(ice->agent, ice->stream, &own_fragment, &own_password)) return false;
  bool fits = copy(fragment, own_fragment, room) && copy(password, own_password, room);
  g_free(own_fragment);
  g_free(own_password);
  return fits;
}

bool millrace_ice_set_remote_credentials(millrace_ice *ice, const char *fragment, const char *password) {
  if (!nice_agent_set_remote_credentials(ice->agent, ice->stream, fragment, password)) return false;
  if (!copy(ice->remote_fragment, fragment, credential_room) || !copy(ice->remote_password, password, credential_room)) {
    ice->remote_fragment[0] = 0;
  }
  return true;
}

bool millrace_ice_add_candidate(millrace_ice *ice, const char *text) {
  gchar *line = g_strconcat("a=", text, NULL);
  NiceCandidate *candidate = nice_agent_parse_remote_candidate_sdp(ice->agent, ice->stream, line);
  g_free(line);
  if (candidate == NULL) return false;
  bool is_taken = false;
  if (candidate->component_id == component) {
    GSList list = {.data = candidate, .next = NULL};
    is_taken = nice_agent_set_remote_candidates(ice->agent, ice->stream, component, &list) >= 0;
  }
  nice_candidate_free(candidate);
  return is_taken;
}

void millrace_ice_end_candidates(millrace_ice *ice) {
  nice_agent_peer_candidate_gathering_done(ice->agent, ice->stream);
}

bool millrace_ice_restart(millrace_ice *ice) { return nice_agent_restart_stream(ice->agent, ice->stream); }

// MARK: Datagrams

bool millrace_ice_send(millrace_ice *ice, const uint8_t *bytes, size_t count) {
  return nice_agent_send(ice->agent, ice->stream, component, (guint)count, (const gchar *)bytes) == (gint)count;
}

bool millrace_ice_is_controlling(millrace_ice *ice) {
  gboolean is_controlling = FALSE;
  g_object_get(ice->agent, "controlling-mode", &is_controlling, NULL);
  return is_controlling;
}

bool millrace_ice_selected_pair(millrace_ice *ice, char *local, char *remote, size_t room) {
  NiceCandidate *own = NULL, *other = NULL;
  if (!nice_agent_get_selected_pair(ice->agent, ice->stream, component, &own, &other)) return false;
  gchar *own_text = nice_agent_generate_local_candidate_sdp(ice->agent, own);
  gchar *other_text = nice_agent_generate_local_candidate_sdp(ice->agent, other);
  bool fits = own_text != NULL && other_text != NULL && copy(local, own_text + 2, room) && copy(remote, other_text + 2, room);
  g_free(own_text);
  g_free(other_text);
  return fits;
}

// MARK: Signs of life

// A binding request as a check has it. Its priority is that of a peer-reflexive candidate, the only use the peer could have for it.
static size_t make_probe(millrace_ice *ice, uint8_t *bytes, size_t room) {
  enum { peer_reflexive_priority = 0x6e0001ff };
  gchar *fragment = NULL, *password = NULL;
  if (ice->remote_fragment[0] == 0 ||
      !nice_agent_get_local_credentials(ice->agent, ice->stream, &fragment, &password)) {
    return 0;
  }
  gchar *name = g_strconcat(ice->remote_fragment, ":", fragment, NULL);
  StunAttribute role =
      millrace_ice_is_controlling(ice) ? STUN_ATTRIBUTE_ICE_CONTROLLING : STUN_ATTRIBUTE_ICE_CONTROLLED;
  StunAgent agent;
  StunMessage message;
  stun_agent_init(
      &agent, NULL, STUN_COMPATIBILITY_RFC5389,
      STUN_AGENT_USAGE_SHORT_TERM_CREDENTIALS | STUN_AGENT_USAGE_USE_FINGERPRINT);
  size_t count = 0;
  if (stun_agent_init_request(&agent, &message, bytes, room, STUN_BINDING) &&
      stun_message_append_string(&message, STUN_ATTRIBUTE_USERNAME, name) == STUN_MESSAGE_RETURN_SUCCESS &&
      stun_message_append32(&message, STUN_ATTRIBUTE_PRIORITY, peer_reflexive_priority) ==
          STUN_MESSAGE_RETURN_SUCCESS &&
      stun_message_append64(&message, role, ice->tie_breaker) == STUN_MESSAGE_RETURN_SUCCESS) {
    count = stun_agent_finish_message(
        &agent, &message, (const uint8_t *)ice->remote_password, strlen(ice->remote_password));
  }
  g_free(name);
  g_free(fragment);
  g_free(password);
  return count;
}

// Sends a datagram from every socket of the agent to the candidates of the peer, as many as `most_checks` allow.
static bool send_to_candidates(millrace_ice *ice, const uint8_t *bytes, size_t count) {
  GPtrArray *sockets = nice_agent_get_sockets(ice->agent, ice->stream, component);
  if (sockets == NULL) return false;
  GSList *candidates = nice_agent_get_remote_candidates(ice->agent, ice->stream, component);
  int left = most_checks;
  for (GSList *item = candidates; item != NULL; item = item->next) {
    const NiceCandidate *candidate = item->data;
    if (candidate->transport != NICE_CANDIDATE_TRANSPORT_UDP) continue;
    struct sockaddr_storage address;
    nice_address_copy_to_sockaddr(&candidate->addr, (struct sockaddr *)&address);
    socklen_t size = address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    for (guint index = 0; index < sockets->len && left > 0; index++) {
      GSocket *from = g_ptr_array_index(sockets, index);
      if (g_socket_get_socket_type(from) != G_SOCKET_TYPE_DATAGRAM) continue;
      // A socket of the other family refuses.
      ssize_t sent = sendto(
          g_socket_get_fd(from), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address, size);
      if (sent >= 0) left--;
    }
  }
  g_slist_free_full(candidates, (GDestroyNotify)nice_candidate_free);
  g_ptr_array_unref(sockets);
  return left < most_checks;
}

// The answer is of no use here, as libnice drops it. But the request has the peer send its own check at once (RFC 8445 section 7.3.1.4),
// and the peer's has libnice send its next one, which otherwise waits for seconds.
bool millrace_ice_check(millrace_ice *ice) {
  uint8_t bytes[1024];
  size_t count = ice->checks ? make_probe(ice, bytes, sizeof bytes) : 0;
  return count > 0 && send_to_candidates(ice, bytes, count);
}

bool millrace_ice_probe(millrace_ice *ice) {
  uint8_t bytes[1024];
  size_t count = ice->has_consent ? make_probe(ice, bytes, sizeof bytes) : 0;
  return count > 0 && millrace_ice_send(ice, bytes, count);
}

// libnice keeps to itself what STUN brings, and drops the answers to requests that are not its own. But the kernel notes when a datagram
// was last read from a socket.
bool millrace_ice_heard(millrace_ice *ice) {
  GSocket *selected = nice_agent_get_selected_socket(ice->agent, ice->stream, component);
  if (selected == NULL) return false;
  int descriptor = g_socket_get_fd(selected);
  struct timeval stamp = {0};
  // The first call begins the notes, and fails.
  bool is_noted = ioctl(descriptor, SIOCGSTAMP, &stamp) == 0;
  g_object_unref(selected);
  bool is_same = descriptor == ice->watched;
  bool is_later = stamp.tv_sec != ice->stamp.tv_sec || stamp.tv_usec != ice->stamp.tv_usec;
  ice->watched = descriptor;
  ice->stamp = stamp;
  return is_noted && is_same && is_later;
}
