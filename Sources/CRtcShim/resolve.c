#include "millrace_rtc_resolve.h"

#include <netdb.h>
#include <stddef.h>
#include <sys/socket.h>

int millrace_rtc_resolve(const char *host, char *ipv4, char *ipv6, size_t room) {
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
  struct addrinfo *found = NULL;
  ipv4[0] = ipv6[0] = 0;
  int status = getaddrinfo(host, NULL, &hints, &found);
  if (status != 0) return status;
  for (const struct addrinfo *each = found; each != NULL; each = each->ai_next) {
    char *text = each->ai_family == AF_INET ? ipv4 : each->ai_family == AF_INET6 ? ipv6 : NULL;
    if (text == NULL || text[0] != 0) continue;
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, (socklen_t)room, NULL, 0, NI_NUMERICHOST) != 0) text[0] = 0;
  }
  freeaddrinfo(found);
  return 0;
}

const char *millrace_rtc_resolve_error(int number) { return gai_strerror(number); }
