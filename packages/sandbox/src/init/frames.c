/* Reading and writing frames on stdin and stdout. */
#include "init.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEADER 12

static void put32(uint8_t *at, uint32_t v) { memcpy(at, &v, 4); }

void frame_send(uint8_t type, uint32_t id, const void *payload, uint32_t length) {
  uint8_t header[HEADER] = {0};
  put32(header, length);
  put32(header + 4, id);
  header[8] = type;
  struct iovec parts[2] = {{header, HEADER}, {(void *)payload, length}};
  size_t left = HEADER + (size_t)length;
  struct iovec *part = parts;
  int parts_left = length ? 2 : 1;
  while (left) {
    /* Blocking on purpose: the supervisor always reads, and a slow one slows the commands' output. */
    ssize_t n = writev(1, part, parts_left);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        struct pollfd wait = {.fd = 1, .events = POLLOUT};
        poll(&wait, 1, -1);
        continue;
      }
      _exit(0); /* nobody listens any more */
    }
    left -= (size_t)n;
    while (parts_left && (size_t)n >= part->iov_len) {
      n -= (ssize_t)part->iov_len;
      part++;
      parts_left--;
    }
    if (parts_left) {
      part->iov_base = (uint8_t *)part->iov_base + n;
      part->iov_len -= (size_t)n;
    }
  }
}

void frame_error(uint32_t id, int error, const char *what) {
  uint8_t payload[512];
  int32_t code = error;
  size_t length = strnlen(what, sizeof payload - 4);
  memcpy(payload, &code, 4);
  memcpy(payload + 4, what, length);
  frame_send(F_ERROR, id, payload, (uint32_t)(4 + length));
}

int frame_pump(void (*handle)(uint8_t, uint32_t, const uint8_t *, uint32_t)) {
  static uint8_t *buffer;
  static size_t have;
  if (!buffer) buffer = must_alloc(HEADER + MAX_FRAME);
  ssize_t n = read(0, buffer + have, HEADER + MAX_FRAME - have);
  if (n == 0) return 0;
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  have += (size_t)n;
  size_t at = 0;
  while (have - at >= HEADER) {
    uint32_t length, id;
    memcpy(&length, buffer + at, 4);
    memcpy(&id, buffer + at + 4, 4);
    if (length > MAX_FRAME) return 0;
    if (have - at < HEADER + (size_t)length) break;
    handle(buffer[at + 8], id, buffer + at + HEADER, length);
    at += HEADER + (size_t)length;
  }
  memmove(buffer, buffer + at, have - at);
  have -= at;
  return 1;
}
