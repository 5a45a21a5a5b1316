/*
 * Host side: starts sandboxes for a supervisor. A fork copies the page tables of whoever forks, and what that one writes
 * meanwhile is copied page by page: milliseconds for a Node process of 100 MB, a tenth of one for this.
 *
 *   treeward-init spawner --socket PATH
 *
 * Each connection to PATH is one sandbox. Its first frame is F_SPAWN: id, path of the file that descriptor 3 reads (empty:
 * none), and the arguments of `launch`. Whatever follows on it is the sandbox's stdin and stdout. What happens to it is
 * reported on our stdout under the same id: F_SPAWNED with its pid, F_ENDED with its end and its last words on stderr.
 * The end of our stdin is the end of the supervisor: we go, and take what we started along (PR_SET_PDEATHSIG).
 */
#include "init.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 65536
#define MAX_ARGUMENTS 1024

struct child {
  struct child *next;
  pid_t pid;
  uint32_t id;
  int words, slot; /* its stderr, and where that is in the poll set */
  uint32_t length;
  uint8_t *said; /* i32 exit code (-1: killed), i32 signal, then what it said */
};

static struct child *children;

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  umask(077); /* only the supervisor's user may ask */
  return fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 128) ? -1 : fd;
}

static int read_exactly(int fd, void *to, size_t length) {
  for (size_t have = 0; have < length;) {
    ssize_t n = read(fd, (uint8_t *)to + have, length - have);
    if (n == 0 || (n < 0 && errno != EINTR)) return 0;
    if (n > 0) have += (size_t)n;
  }
  return 1;
}

/* In the new process: becomes `launch`, which becomes the sandbox. All else that is open closes when it does. */
static void become(int connection, int words, char *third, int argc, char **argv) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  dup2(words, 2);
  setsid(); /* Ctrl-C at the terminal asks the supervisor to finish, it must not hit the sandboxes */
  umask(022);
  if (chdir("/")) fail("chdir", "/");
  int fd = *third ? open(third, O_RDONLY | O_CLOEXEC) : -1;
  if (*third && fd < 0) fail("open", third);
  dup2(connection, 0);
  dup2(connection, 1);
  if (fd == 3) fcntl(3, F_SETFD, 0);
  else if (fd >= 0) dup2(fd, 3);
  clearenv();
  _exit(launch_main(argc, argv));
}

static void refuse(uint32_t id, const char *what) {
  uint8_t payload[8 + 128];
  int32_t end[2] = {71, 0};
  memcpy(payload, end, sizeof end);
  int length = snprintf((char *)payload + 8, 128, "cannot start a process: %s: %s", what, strerror(errno));
  frame_send(F_ENDED, id, payload, 8 + (uint32_t)length);
}

/* Takes one connection: reads the request, whole before anything else, and starts what it asks for. */
static void accept_one(int listening) {
  int connection = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  if (connection < 0) return;
  struct timeval patience = {.tv_sec = 2}; /* a supervisor writes it in one piece */
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  uint8_t header[12];
  uint32_t length, id;
  char *payload = NULL;
  if (!read_exactly(connection, header, sizeof header)) goto done;
  memcpy(&length, header, 4);
  memcpy(&id, header + 4, 4);
  if (header[8] != F_SPAWN || length == 0 || length > MAX_FRAME) goto done;
  payload = must_alloc(length);
  if (!read_exactly(connection, payload, length) || payload[length - 1] != 0) goto done;
  memset(&patience, 0, sizeof patience);
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);

  char *argv[MAX_ARGUMENTS + 2] = {"treeward-init"}, *at = payload + strlen(payload) + 1;
  int argc = 1;
  for (; at < payload + length && argc <= MAX_ARGUMENTS; at += strlen(at) + 1) argv[argc++] = at;
  int words[2];
  if (pipe2(words, O_CLOEXEC)) {
    refuse(id, "pipe");
    goto done;
  }
  pid_t pid = fork();
  if (pid == 0) become(connection, words[1], payload, argc, argv);
  close(words[1]);
  if (pid < 0) {
    refuse(id, "fork");
    close(words[0]);
    goto done;
  }
  set_nonblocking(words[0]);
  struct child *child = must_alloc(sizeof *child);
  *child = (struct child){children, pid, id, words[0], -1, 8, must_alloc(8 + MAX_WORDS)};
  children = child;
  uint32_t number = (uint32_t)pid;
  frame_send(F_SPAWNED, id, &number, sizeof number);
done:
  free(payload);
  close(connection); /* that of no request sees nothing but this */
}

static void listen_to(struct child *child) {
  static uint8_t beyond[4096];
  for (;;) {
    uint32_t room = 8 + MAX_WORDS - child->length;
    ssize_t n = room ? read(child->words, child->said + child->length, room) : read(child->words, beyond, sizeof beyond);
    if (n > 0 && room) child->length += (uint32_t)n;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n == 0) {
      close(child->words);
      child->words = -1;
    }
    return;
  }
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (struct child **at = &children; *at; at = &(*at)->next) {
      struct child *child = *at;
      if (child->pid != pid) continue;
      if (child->words >= 0) listen_to(child);
      if (child->words >= 0) close(child->words);
      int32_t end[2] = {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
      memcpy(child->said, end, sizeof end);
      frame_send(F_ENDED, child->id, child->said, child->length);
      *at = child->next;
      free(child->said);
      free(child);
      break;
    }
}

int spawner_main(int argc, char **argv) {
  int listening = listen_at(argc == 4 && !strcmp(argv[2], "--socket") ? argv[3] : NULL);
  if (listening < 0) return fprintf(stderr, "spawner: cannot listen: %s\n", strerror(errno)), 71;
  int ended = ends_of_children();
  uint32_t ready[2] = {PROTOCOL, 0};
  frame_send(F_READY, 0, ready, sizeof ready);

  static struct pollfd fds[MAX_POLL];
  for (;;) {
    int count = 0;
    fds[count++] = (struct pollfd){.fd = 0, .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = listening, .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = ended, .events = POLLIN};
    for (struct child *child = children; child; child = child->next) {
      child->slot = child->words >= 0 && count < MAX_POLL ? count++ : -1;
      if (child->slot >= 0) fds[child->slot] = (struct pollfd){.fd = child->words, .events = POLLIN};
    }
    if (poll(fds, (nfds_t)count, -1) < 0 && errno != EINTR) return 72;
    if (fds[0].revents) return 0; /* nothing is ever sent there: the supervisor is gone */
    for (struct child *child = children; child; child = child->next)
      if (child->slot >= 0 && fds[child->slot].revents) listen_to(child);
    if (fds[2].revents) {
      struct signalfd_siginfo info;
      while (read(ended, &info, sizeof info) > 0) {
      }
      reap();
    }
    if (fds[1].revents) accept_one(listening);
  }
}
