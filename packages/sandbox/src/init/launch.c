/*
 * Host side: one process that prepares the mounts of a sandbox in its own mount namespace and becomes bwrap.
 * Nothing it mounts is ever in the host's mount table, so whatever dies, no mount can be left over.
 *
 *   treeward-init launch --dir D --lower L --disk BYTES --inodes N --uid U --gid G
 *     [--userns] [--cgroup FILE]… [--bind SOURCE NAME]… -- /usr/bin/bwrap …
 *
 * D is laid out as mounts.c says; bound sources are at b/NAME.
 */
#include "init.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail("write", path);
  close(fd);
}

static void bind_source(const char *source, const char *target) {
  struct stat st;
  if (stat(source, &st)) fail("stat", source);
  if (S_ISDIR(st.st_mode)) make_dir(target, 0755);
  else if (mknod(target, S_IFREG | 0644, 0)) fail("create", target);
  if (mount(source, target, NULL, MS_BIND | MS_REC, NULL)) fail("bind", source);
  if (mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL)) fail("remount", source);
}

static void enter_namespaces(int userns) {
  uid_t uid = getuid();
  gid_t gid = getgid();
  if (unshare(CLONE_NEWNS | (userns ? CLONE_NEWUSER : 0))) fail("unshare", userns ? "user,mnt" : "mnt");
  if (userns) {
    char map[64];
    write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1\n", uid);
    write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1\n", gid);
    write_file("/proc/self/gid_map", map);
  }
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) fail("make private", "/");
}

static void drop(uid_t uid, gid_t gid) {
  if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) fail("drop to", "sandbox uid");
  if (getuid() == 0 || geteuid() == 0 || setuid(0) == 0) {
    errno = EPERM;
    fail("still root after", "setresuid");
  }
}

int launch_main(int argc, char **argv) {
  const char *binds[64][2];
  struct mount_request request = {.disk = "0", .inodes = "200k"};
  int userns = 0, bind_count = 0, i = 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (; i < argc && strcmp(argv[i], "--"); i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--userns")) userns = 1;
    else if (mounts_option(&request, argv[i], value)) i++;
    /* Before anything else costs memory or forks: all of it counts against the sandbox. */
    else if (!strcmp(argv[i], "--cgroup")) write_file(value, "0"), i++;
    else if (!strcmp(argv[i], "--bind") && i + 2 < argc && bind_count < 64) {
      binds[bind_count][0] = argv[i + 1];
      binds[bind_count++][1] = argv[i + 2];
      i += 2;
    } else {
      fprintf(stderr, "launch: bad argument %s\n", argv[i]);
      return 64;
    }
  }
  if (!request.dir || !request.lower || i + 1 >= argc || (!userns && request.uid == 0)) {
    fprintf(stderr, "launch: --dir, --lower, --uid (not 0) and a command are needed\n");
    return 64;
  }
  umask(0);
  enter_namespaces(userns);

  mounts_make(&request, userns);
  const char *bound = join_path(request.dir, "b");
  for (int b = 0; b < bind_count; b++) bind_source(binds[b][0], join_path(bound, binds[b][1]));

  if (chdir("/")) fail("chdir", "/");
  umask(022);
  if (!userns) drop(request.uid, request.gid);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("prctl", "no_new_privs");
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of uid clears it */
  execv(argv[i + 1], argv + i + 1);
  fail("exec", argv[i + 1]);
}
