/* Commands in flight: pipes, caps, deadlines, the end. */
#include "init.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK 65536
#define MAX_STDIN (16u << 20)
/* A tree that still breeds after this long is ended with one kill(-1), which no fork can outrun. */
#define KILL_PATIENCE_MS 400

struct stream {
  int fd, slot;
  uint8_t type;
  uint64_t sent, dropped;
};

struct command {
  struct command *next;
  uint32_t id;
  pid_t monitor;
  int report, report_slot;
  struct stream out[2];
  int in, in_slot, in_ended;
  uint8_t *in_data;
  size_t in_length, in_at;
  uint64_t max_output, deadline, started, kill_started;
  int killing, timed_out, ended, answered;
  struct monitor_report result;
  int have_result;
};

static struct command *commands;

static struct command *find(uint32_t id) {
  for (struct command *c = commands; c; c = c->next)
    if (c->id == id && !c->answered) return c;
  return NULL;
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static uint32_t take32(const uint8_t **at) {
  uint32_t v;
  memcpy(&v, *at, 4);
  *at += 4;
  return v;
}

/* count zero-terminated strings that follow each other; NULL when they run past the end. */
static char **take_strings(const uint8_t **at, const uint8_t *end, uint32_t count) {
  if (count > (uint32_t)(end - *at)) return NULL;
  char **list = must_alloc((count + 1) * sizeof *list);
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *stop = memchr(*at, 0, (size_t)(end - *at));
    if (!stop) {
      free(list);
      return NULL;
    }
    list[i] = (char *)*at;
    *at = stop + 1;
  }
  return list;
}

/* Payload: u32 argc, u32 envc, u32 timeout ms (0: none), u32 flags (1: stdin follows), u64 cap, cwd, argv, env. */
void command_start(uint32_t id, const uint8_t *payload, uint32_t length) {
  if (length < 24) return frame_error(id, EINVAL, "short exec frame");
  const uint8_t *at = payload, *end = payload + length;
  uint32_t argc = take32(&at), envc = take32(&at), timeout = take32(&at), flags = take32(&at);
  uint64_t cap;
  memcpy(&cap, at, 8);
  at += 8;
  char **cwd = take_strings(&at, end, 1);
  char **argv = cwd ? take_strings(&at, end, argc) : NULL;
  char **envp = argv ? take_strings(&at, end, envc) : NULL;
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
  pid_t pid = -1;
  int error = EINVAL;
  if (!envp || argc == 0) goto fail;
  if (((flags & 1) && pipe2(in, O_CLOEXEC)) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report)) {
    error = errno;
    goto fail;
  }
  pid = fork();
  if (pid < 0) {
    error = errno;
    goto fail;
  }
  if (pid == 0) {
    /* Our own ends must go first, or a command's stdin would never see its end. */
    close_fd(&report[0]);
    close_fd(&in[1]);
    struct spawn_request q = {argv, envp, cwd[0], in[0], out[1], err[1], report[1]};
    monitor_main(&q);
  }
  struct command *c = must_alloc(sizeof *c);
  c->id = id;
  c->monitor = pid;
  c->report = report[0];
  c->out[0] = (struct stream){out[0], -1, F_STDOUT, 0, 0};
  c->out[1] = (struct stream){err[0], -1, F_STDERR, 0, 0};
  c->in = in[1];
  c->max_output = cap;
  c->started = now_ms();
  c->deadline = timeout ? c->started + timeout : 0;
  c->next = commands;
  commands = c;
  set_nonblocking(out[0]);
  set_nonblocking(err[0]);
  if (c->in >= 0) set_nonblocking(c->in);
  close_fd(&in[0]);
  close_fd(&out[1]);
  close_fd(&err[1]);
  close_fd(&report[1]);
  free(cwd);
  free(argv);
  free(envp);
  return;
fail:
  for (int i = 0; i < 2; i++) {
    close_fd(&in[i]);
    close_fd(&out[i]);
    close_fd(&err[i]);
    close_fd(&report[i]);
  }
  free(cwd);
  free(argv);
  free(envp);
  frame_error(id, error, "cannot start a command");
}

void command_stdin(uint32_t id, const uint8_t *data, uint32_t length) {
  struct command *c = find(id);
  if (!c || c->in < 0 || c->in_length + length > MAX_STDIN) return;
  uint8_t *grown = realloc(c->in_data, c->in_length + length + 1);
  if (!grown) _exit(70);
  c->in_data = grown;
  memcpy(c->in_data + c->in_length, data, length);
  c->in_length += length;
}

void command_stdin_end(uint32_t id) {
  struct command *c = find(id);
  if (!c) return;
  c->in_ended = 1;
  if (c->in_at == c->in_length) close_fd(&c->in);
}

static void begin_kill(struct command *c) {
  if (c->killing || c->ended) return;
  c->killing = 1;
  c->kill_started = now_ms();
}

void command_cancel(uint32_t id) {
  struct command *c = find(id);
  if (c) begin_kill(c);
}

/* Returns 1 while more may be there right now. */
static int pump_output(struct command *c, struct stream *s) {
  static uint8_t buffer[CHUNK];
  if (s->fd < 0) return 0;
  ssize_t n = read(s->fd, buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n <= 0) {
    close_fd(&s->fd);
    return 0;
  }
  uint64_t keep = s->sent < c->max_output ? c->max_output - s->sent : 0;
  if (keep > (uint64_t)n) keep = (uint64_t)n;
  if (c->answered) keep = 0; /* a daemon that outlived its command: read on, so that it is not stopped by a full pipe */
  if (keep) frame_send(s->type, c->id, buffer, (uint32_t)keep);
  s->sent += keep;
  s->dropped += (uint64_t)n - keep;
  return 1;
}

static void pump_input(struct command *c) {
  while (c->in >= 0 && c->in_at < c->in_length) {
    ssize_t n = write(c->in, c->in_data + c->in_at, c->in_length - c->in_at);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) {
      close_fd(&c->in); /* the command stopped reading */
      return;
    }
    c->in_at += (size_t)n;
  }
  if (c->in_ended) close_fd(&c->in);
}

struct exit_payload {
  int32_t code, signal;
  uint64_t user_us, system_us, max_rss_kb, wall_ms, out_dropped, err_dropped;
  uint32_t timed_out, failure;
  int32_t failure_errno;
  uint32_t unused;
};

static void finish(struct command *c) {
  /* What the command wrote is in the pipes already; a bound keeps a chattering daemon from holding us here. */
  for (int s = 0; s < 2; s++)
    for (int i = 0; i < 64 && pump_output(c, &c->out[s]); i++) {
    }
  struct exit_payload e = {.code = -1, .signal = SIGKILL};
  if (c->have_result) {
    const struct monitor_report *r = &c->result;
    if (r->kind == REPORT_EXIT) {
      e.code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
      e.signal = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
    } else {
      e.code = r->kind == REPORT_CWD_FAILED ? 126 : 127;
      e.signal = 0;
      e.failure = r->kind;
      e.failure_errno = r->status;
    }
    e.user_us = r->user_us;
    e.system_us = r->system_us;
    e.max_rss_kb = r->max_rss_kb;
  }
  e.wall_ms = now_ms() - c->started;
  e.out_dropped = c->out[0].dropped;
  e.err_dropped = c->out[1].dropped;
  e.timed_out = (uint32_t)c->timed_out;
  frame_send(F_EXIT, c->id, &e, sizeof e);
  c->answered = 1;
  close_fd(&c->in);
  close_fd(&c->report); /* the monitor goes; what it still had becomes ours */
}

static void read_report(struct command *c) {
  struct monitor_report r;
  ssize_t n = recv(c->report, &r, sizeof r, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n == (ssize_t)sizeof r) {
    /* A failed exec is followed by the exit of the child: the first message says more. */
    if (!c->have_result) c->result = r;
    c->have_result = 1;
    if (r.kind == REPORT_EXIT) c->ended = 1;
    return;
  }
  /* The command killed its own monitor: what it left can no longer be told apart, so everything goes. */
  if (!c->have_result && getpid() == 1) kill(-1, SIGKILL);
  c->ended = 1;
  close_fd(&c->report);
}

void command_poll_prepare(struct pollfd *fds, int *count, int *timeout) {
  uint64_t now = now_ms();
  for (struct command *c = commands; c; c = c->next) {
    c->out[0].slot = c->out[1].slot = c->in_slot = c->report_slot = -1;
    if (*count + 4 >= MAX_POLL - 1024) continue; /* relay connections keep their room */
    for (int s = 0; s < 2; s++) {
      if (c->out[s].fd < 0) continue;
      c->out[s].slot = *count;
      fds[(*count)++] = (struct pollfd){.fd = c->out[s].fd, .events = POLLIN};
    }
    if (c->answered) continue;
    if (c->in >= 0) {
      c->in_slot = *count;
      fds[(*count)++] = (struct pollfd){.fd = c->in, .events = c->in_at < c->in_length ? POLLOUT : 0};
    }
    if (c->report >= 0 && !c->ended) {
      c->report_slot = *count;
      fds[(*count)++] = (struct pollfd){.fd = c->report, .events = POLLIN};
    }
    int wait = -1;
    if (c->killing) wait = 2;
    else if (c->deadline) wait = c->deadline > now ? (int)(c->deadline - now) : 0;
    if (wait >= 0 && (*timeout < 0 || wait < *timeout)) *timeout = wait;
  }
}

void command_poll_done(const struct pollfd *fds, int count) {
  uint64_t now = now_ms();
  for (struct command **link = &commands; *link;) {
    struct command *c = *link;
    for (int s = 0; s < 2; s++) {
      int slot = c->out[s].slot;
      if (slot >= 0 && slot < count && fds[slot].revents) pump_output(c, &c->out[s]);
    }
    if (!c->answered) {
      if (c->in_slot >= 0 && fds[c->in_slot].revents) {
        if (fds[c->in_slot].revents & POLLERR) close_fd(&c->in);
        else pump_input(c);
      }
      if (c->report_slot >= 0 && fds[c->report_slot].revents) read_report(c);
      if (!c->killing && !c->ended && c->deadline && now >= c->deadline) {
        c->timed_out = 1;
        begin_kill(c);
      }
      if (c->killing) {
        int left = kill_descendants(c->monitor);
        if (left && now - c->kill_started > KILL_PATIENCE_MS && getpid() == 1) kill(-1, SIGKILL);
        if (!left && c->ended) finish(c);
      } else if (c->ended) {
        finish(c);
      }
    }
    if (c->answered && c->out[0].fd < 0 && c->out[1].fd < 0) {
      *link = c->next;
      free(c->in_data);
      free(c);
      continue;
    }
    link = &c->next;
  }
}
