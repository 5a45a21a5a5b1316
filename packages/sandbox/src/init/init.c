/* The agent's main loop: one thread, one poll set. */
#include "init.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

void *must_alloc(size_t size) {
  void *p = calloc(1, size ? size : 1);
  if (!p) _exit(70);
  return p;
}

int ends_of_children(void) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void handle(uint8_t type, uint32_t id, const uint8_t *payload, uint32_t length) {
  switch (type) {
    case F_EXEC: command_start(id, payload, length); break;
    case F_STDIN: command_stdin(id, payload, length); break;
    case F_STDIN_END: command_stdin_end(id); break;
    case F_CANCEL: command_cancel(id); break;
    case F_WRITE_OPEN: file_write_open(id, payload, length); break;
    case F_WRITE_DATA: file_write_data(id, payload, length); break;
    case F_WRITE_END: file_write_end(id); break;
    case F_READ: file_read(id, payload, length); break;
    default: frame_error(id, ENOSYS, "unknown frame type");
  }
}

static void lower_limit(int which, uint64_t value) {
  struct rlimit limit;
  if (getrlimit(which, &limit)) return;
  /* Raising is EPERM without CAP_SYS_RESOURCE, and nothing here wants more than it was given. */
  if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max) limit.rlim_max = value;
  if (limit.rlim_cur == RLIM_INFINITY || value < limit.rlim_cur) limit.rlim_cur = limit.rlim_max;
  setrlimit(which, &limit);
}

static int agent_main(int argc, char **argv) {
  int port = 0;
  const char *socket_path = NULL;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--data")) lower_limit(RLIMIT_DATA, strtoull(argv[i + 1], NULL, 10));
    else if (!strcmp(argv[i], "--nproc")) lower_limit(RLIMIT_NPROC, strtoull(argv[i + 1], NULL, 10));
    /* Private: other uids have no business there. Exists already where the sandbox's maker made it. */
    else if (!strcmp(argv[i], "--home")) mkdir(argv[i + 1], 0700);
    else if (!strcmp(argv[i], "--port")) port = atoi(argv[i + 1]);
    else if (!strcmp(argv[i], "--model")) socket_path = argv[i + 1];
    else return fprintf(stderr, "agent: unknown option %s\n", argv[i]), 64;
  }
  lower_limit(RLIMIT_CORE, 0);
  /* Commands run under the same uid: keep them out of our descriptors and memory. */
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* as pid 1 this is so anyway; without a pid namespace it is not */
  umask(022);
  int children = ends_of_children();
  fcntl(0, F_SETFD, FD_CLOEXEC);
  fcntl(1, F_SETFD, FD_CLOEXEC);
  set_nonblocking(0);

  int bound = 0;
  if (socket_path && (bound = relay_listen(port, socket_path)) < 0) {
    return fprintf(stderr, "agent: cannot listen on 127.0.0.1:%d: %s\n", port, strerror(errno)), 71;
  }
  uint32_t ready[2] = {PROTOCOL, (uint32_t)bound};
  frame_send(F_READY, 0, ready, sizeof ready);

  static struct pollfd fds[MAX_POLL];
  for (;;) {
    int count = 0, timeout = -1;
    fds[count++] = (struct pollfd){.fd = 0, .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = children, .events = POLLIN};
    command_poll_prepare(fds, &count, &timeout);
    relay_poll_prepare(fds, &count, &timeout);
    if (poll(fds, (nfds_t)count, timeout) < 0 && errno != EINTR) return 72;
    if (fds[1].revents) {
      struct signalfd_siginfo info;
      while (read(children, &info, sizeof info) > 0) {
      }
      while (waitpid(-1, NULL, WNOHANG) > 0) {
      }
    }
    command_poll_done(fds, count);
    relay_poll_done(fds, count);
    /* The supervisor is gone or is closing us: as pid 1 our exit takes the whole namespace along. */
    if (fds[0].revents && !frame_pump(handle)) {
      if (getpid() == 1) kill(-1, SIGKILL);
      else
        for (int i = 0; i < 200 && kill_descendants(getpid()); i++) usleep(2000);
      return 0;
    }
  }
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "agent")) return agent_main(argc, argv);
  if (argc > 1 && !strcmp(argv[1], "launch")) return launch_main(argc, argv);
  if (argc > 1 && !strcmp(argv[1], "spawner")) return spawner_main(argc, argv);
  if (argc > 1 && !strcmp(argv[1], "mount")) return mount_main(argc, argv);
  if (argc > 1 && !strcmp(argv[1], "unmount")) return unmount_main(argc, argv);
  fprintf(stderr, "usage: treeward-init agent|launch|spawner|mount|unmount …\n");
  return 64;
}
