/*
 * The workspace of a sandbox: a tmpfs of a fixed size with an overlay in it. D is an empty directory; it gets
 * u (upper), w (work), m (merged), t (for a tracer's output) and b (for bound sources).
 *
 *   treeward-init mount --dir D --lower L --disk BYTES --inodes N --uid U --gid G    in the caller's mount namespace,
 *                                                    for container daemons, which can bind only what the host shows
 *   treeward-init unmount PATH…                      in the order given
 */
#include "init.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

void fail(const char *what, const char *on) {
  fprintf(stderr, "launch: %s %s: %s\n", what, on, strerror(errno));
  exit(75);
}

const char *join_path(const char *a, const char *b) {
  char *out = NULL;
  if (asprintf(&out, "%s/%s", a, b) < 0) exit(70);
  return out;
}

void make_dir(const char *path, mode_t mode) {
  if (mkdir(path, mode)) fail("mkdir", path);
  if (chmod(path, mode)) fail("chmod", path);
}

int mounts_option(struct mount_request *request, const char *name, const char *value) {
  if (!strcmp(name, "--dir")) request->dir = value;
  else if (!strcmp(name, "--lower")) request->lower = value;
  else if (!strcmp(name, "--disk")) request->disk = value;
  else if (!strcmp(name, "--inodes")) request->inodes = value;
  else if (!strcmp(name, "--uid")) request->uid = (uid_t)strtoul(value, NULL, 10);
  else if (!strcmp(name, "--gid")) request->gid = (gid_t)strtoul(value, NULL, 10);
  else return 0;
  return 1;
}

void mounts_make(const struct mount_request *request, int userns) {
  char options[4096];
  const char *dir = request->dir;
  snprintf(options, sizeof options, "size=%s,nr_inodes=%s,mode=0711", request->disk, request->inodes);
  if (mount("treeward", dir, "tmpfs", MS_NOSUID | MS_NODEV, options)) fail("mount tmpfs on", dir);
  const char *upper = join_path(dir, "u"), *work = join_path(dir, "w"), *merged = join_path(dir, "m");
  const char *trace = join_path(dir, "t");
  make_dir(upper, 0755);
  make_dir(work, 0755);
  make_dir(merged, 0755);
  make_dir(join_path(dir, "b"), 0711);
  make_dir(trace, 0700);
  if (!userns && (chown(upper, request->uid, request->gid) || chown(trace, request->uid, request->gid)))
    fail("chown", upper);
  /* No redirects and no metadata-only copies: the upper directory alone tells what was changed. */
  int n = snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s%s", request->lower, upper, work,
                   userns ? ",userxattr" : ",redirect_dir=off,metacopy=off,index=off");
  if (n < 0 || (size_t)n >= sizeof options) {
    errno = ENAMETOOLONG;
    fail("mount overlay on", merged);
  }
  if (mount("treeward", merged, "overlay", MS_NOSUID | MS_NODEV, options)) fail("mount overlay on", merged);
}

int mount_main(int argc, char **argv) {
  struct mount_request request = {.disk = "0", .inodes = "200k"};
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!mounts_option(&request, argv[i], argv[i + 1])) {
      fprintf(stderr, "mount: bad argument %s\n", argv[i]);
      return 64;
    }
  }
  if (!request.dir || !request.lower || request.uid == 0) {
    fprintf(stderr, "mount: --dir, --lower and --uid (not 0) are needed\n");
    return 64;
  }
  umask(0);
  mounts_make(&request, 0);
  return 0;
}

int unmount_main(int argc, char **argv) {
  int failed = 0;
  for (int i = 2; i < argc; i++) {
    if (!umount2(argv[i], UMOUNT_NOFOLLOW)) continue;
    /* EINVAL: nothing is mounted there (any more). Busy: out of the tree now, gone with its last user. */
    if (errno == EINVAL || errno == ENOENT || !umount2(argv[i], MNT_DETACH | UMOUNT_NOFOLLOW)) continue;
    fprintf(stderr, "unmount %s: %s\n", argv[i], strerror(errno));
    failed = 75;
  }
  return failed;
}
