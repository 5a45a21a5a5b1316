/*
 * 127.0.0.1:PORT inside → the model's unix socket. Harness CLIs only take TCP base URLs, and the sandbox has no
 * other network. Each direction ends on its own (half-close), as HTTP clients may do after their request.
 */
#include "init.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BUFFER 65536
#define MAX_CONNECTIONS 256
/* A gateway that is being restarted is away this long at most; the client waits instead of seeing a refusal. */
#define CONNECT_PATIENCE_MS 15000

struct half {
  size_t from, to;
  int ended, shut;
  uint8_t data[BUFFER];
};

struct connection {
  struct connection *next;
  int fd[2]; /* client, model (or -1 while connecting) */
  int slot[2];
  int dead;
  uint64_t opened;
  struct half half[2]; /* half[i] was read from fd[i], goes to fd[1 - i] */
};

static int listener = -1, listener_slot, open_connections;
static struct sockaddr_un model;
static struct connection *connections;

int relay_listen(int port, const char *socket_path) {
  if (strlen(socket_path) >= sizeof model.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  model.sun_family = AF_UNIX;
  strcpy(model.sun_path, socket_path);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128) ||
      getsockname(listener, (struct sockaddr *)&address, &size))
    return -1;
  return ntohs(address.sin_port);
}

static void try_connect(struct connection *c) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0 && !connect(fd, (struct sockaddr *)&model, sizeof model)) {
    c->fd[1] = fd;
    return;
  }
  int error = errno;
  if (fd >= 0) close(fd);
  /* EACCES: a socket file is made before its mode can be set. */
  int may_come = error == EAGAIN || error == ENOENT || error == ECONNREFUSED || error == EACCES;
  if (!may_come || now_ms() - c->opened > CONNECT_PATIENCE_MS) c->dead = 1;
}

static void accept_one(void) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct connection *c = must_alloc(sizeof *c);
  c->fd[0] = fd;
  c->fd[1] = -1;
  c->opened = now_ms();
  c->next = connections;
  connections = c;
  open_connections++;
  try_connect(c);
}

void relay_poll_prepare(struct pollfd *fds, int *count, int *timeout) {
  listener_slot = -1;
  if (listener < 0) return;
  if (open_connections < MAX_CONNECTIONS) {
    listener_slot = *count;
    fds[(*count)++] = (struct pollfd){.fd = listener, .events = POLLIN};
  }
  for (struct connection *c = connections; c; c = c->next) {
    if (c->fd[1] < 0 && (*timeout < 0 || *timeout > 20)) *timeout = 20;
    for (int i = 0; i < 2; i++) {
      c->slot[i] = -1;
      if (c->fd[i] < 0) continue;
      struct half *in = &c->half[i], *out = &c->half[1 - i];
      short events = 0;
      if (!in->ended && in->to < BUFFER) events |= POLLIN;
      if (out->from < out->to) events |= POLLOUT;
      /* A peer that is done in both senses would report POLLHUP for ever: leave it out. */
      if (!events && in->ended) continue;
      c->slot[i] = *count;
      fds[(*count)++] = (struct pollfd){.fd = c->fd[i], .events = events};
    }
  }
}

static void move(struct connection *c, int i) {
  struct half *h = &c->half[i];
  int from = c->fd[i], to = c->fd[1 - i];
  if (!h->ended && h->to < BUFFER && from >= 0) {
    ssize_t n = read(from, h->data + h->to, BUFFER - h->to);
    if (n > 0) h->to += (size_t)n;
    else if (n == 0) h->ended = 1;
    else if (errno != EAGAIN && errno != EINTR) c->dead = 1;
  }
  if (to >= 0 && h->from < h->to) {
    ssize_t n = send(to, h->data + h->from, h->to - h->from, MSG_NOSIGNAL);
    if (n > 0) h->from += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR) c->dead = 1;
    if (h->from == h->to) h->from = h->to = 0;
    else if (h->from && h->to == BUFFER) {
      memmove(h->data, h->data + h->from, h->to - h->from);
      h->to -= h->from;
      h->from = 0;
    }
  }
  if (to >= 0 && h->ended && h->from == h->to && !h->shut) {
    shutdown(to, SHUT_WR);
    h->shut = 1;
  }
}

void relay_poll_done(const struct pollfd *fds, int count) {
  (void)count;
  for (struct connection **link = &connections; *link;) {
    struct connection *c = *link;
    if (c->fd[1] < 0) try_connect(c);
    for (int i = 0; i < 2 && !c->dead; i++) move(c, i);
    for (int i = 0; i < 2; i++)
      if (c->slot[i] >= 0 && fds[c->slot[i]].revents & POLLERR) c->dead = 1;
    if (c->dead || (c->half[0].shut && c->half[1].shut)) {
      close(c->fd[0]);
      if (c->fd[1] >= 0) close(c->fd[1]);
      *link = c->next;
      free(c);
      open_connections--;
      continue;
    }
    link = &c->next;
  }
  if (listener_slot >= 0 && fds[listener_slot].revents) accept_one();
}
