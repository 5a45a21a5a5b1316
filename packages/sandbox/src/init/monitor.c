/*
 * The process between the agent and a command. It is the subreaper of everything the command starts, so that a
 * daemon that left the process group (setsid, double fork) still hangs below it and can be found when time is up.
 */
#include "init.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_all_but(int keep) {
  for (int fd = 0; fd < 3; fd++)
    if (fd != keep) close(fd);
#ifdef SYS_close_range
  if ((keep <= 3 || !syscall(SYS_close_range, 3u, (unsigned)keep - 1, 0)) &&
      !syscall(SYS_close_range, (unsigned)keep + 1, ~0u, 0))
    return;
#endif
  for (int fd = 3; fd < 20000; fd++)
    if (fd != keep) close(fd);
}

static void report(int fd, uint32_t kind, int32_t status) {
  struct monitor_report r = {.kind = kind, .status = status};
  send(fd, &r, sizeof r, MSG_NOSIGNAL);
}

static void child_main(const struct spawn_request *q) __attribute__((noreturn));
static void child_main(const struct spawn_request *q) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  if (q->in >= 0) dup2(q->in, 0);
  else dup2(open("/dev/null", O_RDONLY), 0);
  dup2(q->out, 1);
  dup2(q->err, 2);
  /* If memory runs out the command should go, not the agent. Our /proc entry is root's until we are dumpable. */
  prctl(PR_SET_DUMPABLE, 1);
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (write(fd, "500", 3) < 0) { /* only a preference */
    }
    close(fd);
  }
  if (chdir(q->cwd)) {
    report(q->report, REPORT_CWD_FAILED, errno);
    _exit(126);
  }
  extern char **environ;
  environ = (char **)q->envp; /* execvp looks PATH up here: the command's own */
  execvp(q->argv[0], q->argv);
  report(q->report, REPORT_EXEC_FAILED, errno);
  _exit(127);
}

void monitor_main(const struct spawn_request *q) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t child = fork();
  if (child == 0) child_main(q);
  if (child < 0) {
    report(q->report, REPORT_EXEC_FAILED, errno);
    _exit(0);
  }
  close_all_but(q->report);
  for (;;) {
    int status;
    struct rusage use;
    pid_t pid = wait4(-1, &status, 0, &use);
    if (pid < 0 && errno != EINTR) _exit(1);
    if (pid != child) continue;
    struct monitor_report r = {
        .kind = REPORT_EXIT,
        .status = status,
        .user_us = (uint64_t)use.ru_utime.tv_sec * 1000000 + (uint64_t)use.ru_utime.tv_usec,
        .system_us = (uint64_t)use.ru_stime.tv_sec * 1000000 + (uint64_t)use.ru_stime.tv_usec,
        .max_rss_kb = (uint64_t)use.ru_maxrss,
    };
    send(q->report, &r, sizeof r, MSG_NOSIGNAL);
    break;
  }
  /* Stay the parent of what is left until the agent lets go; the kernel reaps it. */
  signal(SIGCHLD, SIG_IGN);
  char byte;
  while (recv(q->report, &byte, 1, 0) < 0 && errno == EINTR) {
  }
  _exit(0);
}

struct process {
  pid_t pid, parent;
  char state;
  char below;
};

static int read_process(const char *name, struct process *out) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%.20s/stat", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  char *after = strrchr(text, ')'); /* the name may hold anything, brackets too */
  int parent;
  if (!after || sscanf(after + 1, " %c %d", &out->state, &parent) != 2) return 0;
  out->pid = atoi(name);
  out->parent = parent;
  out->below = 0;
  return 1;
}

int kill_descendants(pid_t root) {
  DIR *proc = opendir("/proc");
  if (!proc) return 0;
  struct process *list = NULL;
  size_t count = 0, room = 0;
  struct dirent *entry;
  while ((entry = readdir(proc))) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (count == room) {
      room = room ? room * 2 : 256;
      list = realloc(list, room * sizeof *list);
      if (!list) _exit(70);
    }
    if (read_process(entry->d_name, &list[count])) count++;
  }
  closedir(proc);
  int found = 0, grown = 1;
  while (grown) {
    grown = 0;
    for (size_t i = 0; i < count; i++) {
      if (list[i].below) continue;
      int below = list[i].parent == root;
      for (size_t j = 0; !below && j < count; j++) below = list[j].below && list[j].pid == list[i].parent;
      if (!below) continue;
      list[i].below = 1;
      grown = 1;
      if (list[i].state != 'Z') {
        kill(list[i].pid, SIGKILL);
        found++;
      }
    }
  }
  free(list);
  return found;
}
