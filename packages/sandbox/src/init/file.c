/* Files moved for the supervisor, seen and permitted as from inside: no link or .. can reach the host. */
#include "init.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct writing {
  struct writing *next;
  uint32_t id;
  int fd, error;
  mode_t mode;
};

static struct writing *writings;

static int make_parents(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    int failed = mkdir(path, 0755) && errno != EEXIST;
    *slash = '/';
    if (failed) return -1;
  }
  return 0;
}

/* Never through a link as last component (it is replaced), never into a pipe or device that could block. */
static int open_target(char *path) {
  int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  if (make_parents(path)) return -1;
  int fd = open(path, flags, 0600);
  if (fd < 0 && errno == ELOOP && !unlink(path)) fd = open(path, flags | O_EXCL, 0600);
  struct stat st;
  if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
    close(fd);
    errno = EINVAL;
    return -1;
  }
  return fd;
}

static int is_path(const uint8_t *at, uint32_t length) {
  return length > 1 && at[length - 1] == 0 && !memchr(at, 0, length - 1);
}

/* Payload: u32 mode, path with its final zero. Answered at the end of the write. */
void file_write_open(uint32_t id, const uint8_t *payload, uint32_t length) {
  struct writing *w = must_alloc(sizeof *w);
  w->id = id;
  w->fd = -1;
  w->next = writings;
  writings = w;
  if (length < 6 || !is_path(payload + 4, length - 4)) {
    w->error = EINVAL;
    return;
  }
  uint32_t mode;
  memcpy(&mode, payload, 4);
  w->mode = mode & 0777;
  char *path = strdup((const char *)payload + 4);
  if (!path) _exit(70);
  w->fd = open_target(path);
  if (w->fd < 0) w->error = errno;
  free(path);
}

static struct writing *find(uint32_t id) {
  for (struct writing *w = writings; w; w = w->next)
    if (w->id == id) return w;
  return NULL;
}

void file_write_data(uint32_t id, const uint8_t *payload, uint32_t length) {
  struct writing *w = find(id);
  if (!w || w->error) return;
  while (length) {
    ssize_t n = write(w->fd, payload, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      w->error = errno;
      return;
    }
    payload += n;
    length -= (uint32_t)n;
  }
}

void file_write_end(uint32_t id) {
  struct writing *w = find(id);
  if (!w) return frame_error(id, EBADF, "no such write");
  if (!w->error && fchmod(w->fd, w->mode)) w->error = errno;
  if (w->fd >= 0 && close(w->fd) && !w->error) w->error = errno;
  if (w->error) frame_error(id, w->error, strerror(w->error));
  else frame_send(F_DONE, id, NULL, 0);
  for (struct writing **link = &writings; *link; link = &(*link)->next) {
    if (*link == w) {
      *link = w->next;
      break;
    }
  }
  free(w);
}

/* Payload: u64 most bytes, path with its final zero. */
void file_read(uint32_t id, const uint8_t *payload, uint32_t length) {
  static uint8_t buffer[262144];
  if (length < 10 || !is_path(payload + 8, length - 8)) return frame_error(id, EINVAL, "bad path");
  uint64_t most, total = 0;
  memcpy(&most, payload, 8);
  int fd = open((const char *)payload + 8, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat st;
  int error = fd < 0 ? errno : 0;
  if (!error && fstat(fd, &st)) error = errno;
  if (!error && !S_ISREG(st.st_mode)) error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
  if (!error && (uint64_t)st.st_size > most) error = EFBIG;
  while (!error) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    total += (uint64_t)n;
    if (total > most) error = EFBIG;
    else frame_send(F_DATA, id, buffer, (uint32_t)n);
  }
  if (fd >= 0) close(fd);
  if (error) frame_error(id, error, strerror(error));
  else frame_send(F_DONE, id, NULL, 0);
}
