/*
 * treeward-init: one static binary with these roles.
 *   spawner  on the host: starts `launch` for a supervisor that is costly to fork (spawner.c).
 *   launch   on the host: joins cgroups, builds the sandbox's mounts in a private mount namespace, drops the uid,
 *            becomes bwrap (launch.c).
 *   mount, unmount   on the host: the same mounts for a container daemon (mounts.c).
 *   agent    inside: first process of the sandbox; runs commands and moves files for the supervisor (the rest).
 *
 * Frames on the agent's stdin and stdout, little-endian: u32 payload length, u32 id, u8 type, 3 zero bytes, payload.
 * frames.ts is the other end; the two change together with PROTOCOL.
 */
#ifndef TREEWARD_INIT_H
#define TREEWARD_INIT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTOCOL 1
#define MAX_FRAME (1u << 20)
#define MAX_POLL 4096

enum frame_type {
  /* from the supervisor */
  F_EXEC = 1,
  F_STDIN = 2,
  F_STDIN_END = 3,
  F_CANCEL = 4,
  F_WRITE_OPEN = 5,
  F_WRITE_DATA = 6,
  F_WRITE_END = 7,
  F_READ = 8,
  F_SPAWN = 9, /* to the spawner */
  /* to the supervisor */
  F_READY = 64,
  F_STDOUT = 65,
  F_STDERR = 66,
  F_EXIT = 67,
  F_DATA = 68,
  F_DONE = 69,
  F_ERROR = 70,
  /* from the spawner */
  F_SPAWNED = 71,
  F_ENDED = 72,
};

/* frames.c */
void frame_send(uint8_t type, uint32_t id, const void *payload, uint32_t length);
void frame_error(uint32_t id, int error, const char *what);
/* Reads what stdin has; calls handle for each whole frame. Returns 0 at end of input. */
int frame_pump(void (*handle)(uint8_t type, uint32_t id, const uint8_t *payload, uint32_t length));

/* command.c */
void command_start(uint32_t id, const uint8_t *payload, uint32_t length);
void command_stdin(uint32_t id, const uint8_t *data, uint32_t length);
void command_stdin_end(uint32_t id);
void command_cancel(uint32_t id);
/* Adds descriptors to the poll set from *count on; lowers *timeout (ms) to the next deadline. */
void command_poll_prepare(struct pollfd *fds, int *count, int *timeout);
void command_poll_done(const struct pollfd *fds, int count);

/* monitor.c: the process between agent and command. */
struct spawn_request {
  char *const *argv;
  char *const *envp;
  const char *cwd;
  int in, out, err;
  int report;
};
struct monitor_report {
  uint32_t kind; /* REPORT_* */
  int32_t status; /* wait status, or errno */
  uint64_t user_us, system_us, max_rss_kb;
};
enum { REPORT_EXIT = 1, REPORT_EXEC_FAILED = 2, REPORT_CWD_FAILED = 3 };
void monitor_main(const struct spawn_request *request) __attribute__((noreturn));
/* SIGKILLs every living descendant of root (not root itself); returns how many there were. */
int kill_descendants(pid_t root);

/* file.c */
void file_write_open(uint32_t id, const uint8_t *payload, uint32_t length);
void file_write_data(uint32_t id, const uint8_t *payload, uint32_t length);
void file_write_end(uint32_t id);
void file_read(uint32_t id, const uint8_t *payload, uint32_t length);

/* relay.c */
int relay_listen(int port, const char *socket_path);
void relay_poll_prepare(struct pollfd *fds, int *count, int *timeout);
void relay_poll_done(const struct pollfd *fds, int count);

/* mounts.c */
struct mount_request {
  const char *dir, *lower, *disk, *inodes;
  uid_t uid;
  gid_t gid;
};
void fail(const char *what, const char *on) __attribute__((noreturn));
const char *join_path(const char *a, const char *b);
void make_dir(const char *path, mode_t mode);
/* Takes one of --dir, --lower, --disk, --inodes, --uid, --gid; returns 0 for anything else. */
int mounts_option(struct mount_request *request, const char *name, const char *value);
/* Exits with a message on failure. userns: inside a user namespace of the caller's. */
void mounts_make(const struct mount_request *request, int userns);
int mount_main(int argc, char **argv);
int unmount_main(int argc, char **argv);

/* launch.c */
int launch_main(int argc, char **argv);

/* spawner.c */
int spawner_main(int argc, char **argv);

/* init.c */
uint64_t now_ms(void);
void set_nonblocking(int fd);
/* Ignores SIGPIPE, and takes SIGCHLD by the descriptor that it returns. */
int ends_of_children(void);
void *must_alloc(size_t size);

#endif
