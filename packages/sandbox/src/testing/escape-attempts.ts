/** One real attempt from inside. It prints BREACH where it got what it wanted. */
export interface Attempt {
  area: string;
  name: string;
  /** With /bin/sh, or /usr/bin/python3. The environment holds what an attacker may know: see EscapeContext. */
  sh?: string;
  python?: string;
  /** What a refused attacker sees: that the attempt ran, and how it was stopped. */
  sees: RegExp;
  /** Milliseconds; most take a few. @default 20000 */
  timeout?: number;
  /** Work for the host afterwards: collect the workspace, read through the sandbox. */
  then?: 'export' | 'read' | 'write';
}

const DENIED =
  /Permission denied|Operation not permitted|No such file|Read-only file system|not permitted|must be superuser|Not a directory|Function not implemented|nonexistent|Invalid argument/;

/** ctypes: a system call by number, told apart by errno. 1 is the filter's or the kernel's EPERM. */
const syscall = (expression: string): string => `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall(${expression})
e = ctypes.get_errno()
print('BREACH' if r >= 0 else 'errno ' + os.strerror(e))`;

const connect = (family: string, target: string): string => `
import os, socket
s = socket.socket(socket.${family}, socket.SOCK_STREAM); s.settimeout(3)
try:
    s.connect(${target}); print('BREACH', s.recv(100))
except OSError as error: print('refused:', error)`;
const NO_WAY =
  /refused: .*(Connection refused|unreachable|No such file|not permitted|timed out|Permission denied)/;

const hostFiles: Attempt[] = [
  { name: 'password hashes', sh: 'cat /etc/shadow && echo BREACH', sees: DENIED },
  { name: 'a file by its host path', sh: 'cat "$SECRET" && echo BREACH', sees: DENIED },
  {
    name: 'a file through .. from the workspace',
    sh: 'cat "../../../../..$SECRET" && echo BREACH',
    sees: DENIED,
  },
  { name: 'through the root of process 1', sh: 'cat "/proc/1/root$SECRET" && echo BREACH', sees: DENIED },
  {
    name: 'through the working directory of another process',
    sh: 'cat /proc/1/cwd/../etc/shadow && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'the raw disk',
    sh: 'for d in /dev/vda /dev/sda /dev/nvme0n1; do head -c 1 $d && echo BREACH; done; mknod disk b 254 0 && head -c 1 disk && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'kernel memory',
    sh: 'test -n "$(head -c 4 /proc/kcore)" && echo BREACH; head -c 1 /dev/mem && echo BREACH; head -c 1 /dev/kmsg && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'a file by its handle (open_by_handle_at)',
    python: syscall('304, -100, b"\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02\\0\\0\\0\\0\\0\\0\\0", 0'),
    sees: DENIED,
  },
  {
    name: 'root’s home and mounted volumes',
    sh: 'ls /root/.ssh /root/.cache /home/* /mnt/* /srv/* && echo BREACH',
    sees: DENIED,
  },
].map((attempt) => ({ area: 'host files', ...attempt }));

const hostSettings: Attempt[] = [
  {
    name: 'core_pattern, which the kernel runs as root',
    sh: 'echo "|/tmp/x" > /proc/sys/kernel/core_pattern && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'uevent_helper, which the kernel runs as root',
    sh: 'echo /tmp/x > /sys/kernel/uevent_helper && echo BREACH',
    sees: DENIED,
  },
  { name: 'sysrq', sh: 'echo h > /proc/sysrq-trigger && echo BREACH', sees: DENIED },
  {
    name: 'the clock',
    python: 'import time\ntime.clock_settime(time.CLOCK_REALTIME, 0); print("BREACH")',
    sees: DENIED,
  },
  { name: 'a kernel module', python: syscall('175, b"", 0, b""'), sees: DENIED },
  {
    name: 'the system’s programs and libraries',
    sh: 'for f in /usr/bin/env /usr/lib/x /etc/passwd /etc/ld.so.preload; do echo x >> $f && echo BREACH; done',
    sees: DENIED,
  },
].map((attempt) => ({ area: 'host settings', ...attempt }));

const others: Attempt[] = [
  {
    name: 'another rollout’s files',
    sh: 'find / -name "victim-note*" 2>/dev/null | grep . && echo BREACH; echo looked',
    sees: /^looked$/m,
  },
  {
    name: 'another rollout’s model socket by its path',
    python: connect('AF_UNIX', "os.environ['VICTIM_SOCKET']"),
    sees: NO_WAY,
  },
  {
    name: 'another rollout’s model socket beside one’s own',
    sh: 'ls -A /run/model/..; ls -A /run/model/../*/ | grep -i victim && echo BREACH; echo looked',
    sees: /^looked$/m,
  },
  {
    name: 'a socket of the host in the abstract name space',
    python: connect('AF_UNIX', "'\\0' + os.environ['ABSTRACT']"),
    sees: NO_WAY,
  },
  {
    name: 'other rollouts’ keys in environments and files',
    sh: 'grep -rals "tw-key-of-[v]ictim" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /run /tmp /var /opt /workspace /dev/shm 2>/dev/null && echo BREACH; echo looked',
    sees: /^looked$/m,
  },
  {
    name: 'shared memory of others',
    sh: 'ls -A /dev/shm /dev/mqueue 2>/dev/null | grep victim && echo BREACH; echo looked',
    sees: /^looked$/m,
  },
  { name: 'System V shared memory of the host', python: syscall('29, 0x7ee, 0, 0'), sees: DENIED },
  {
    name: 'killing another rollout’s processes',
    sh: 'kill -9 $VICTIM_PID && echo BREACH; true',
    sees: /No such process/,
  },
  {
    name: 'another’s files through a mounted parent',
    sh: 'ls /run/treeward | grep -v "^init$" && echo BREACH; cat /run/treeward/../../run/treeward/*/owner.json && echo BREACH',
    sees: DENIED,
  },
].map((attempt) => ({ area: 'other rollouts', ...attempt }));

const network: Attempt[] = [
  {
    name: 'a listener of the host on 127.0.0.1',
    python: connect('AF_INET', "('127.0.0.1', int(os.environ['PORT']))"),
    sees: NO_WAY,
  },
  {
    name: 'a listener of the host on its address',
    python: connect('AF_INET', "(os.environ['HOST_ADDRESS'], int(os.environ['PORT']))"),
    sees: NO_WAY,
  },
  {
    name: 'the cloud’s metadata service',
    python: connect('AF_INET', "('169.254.169.254', 80)"),
    sees: NO_WAY,
  },
  { name: 'the internet', python: connect('AF_INET', "('1.1.1.1', 443)"), sees: NO_WAY },
  {
    name: 'a name',
    python:
      'import socket\ntry: print("BREACH", socket.gethostbyname("example.com"))\nexcept OSError as e: print("refused:", e)',
    sees: /refused/,
  },
  {
    name: 'raw packets',
    python: 'import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3); print("BREACH")',
    sees: DENIED,
  },
  { name: 'the hypervisor (vsock)', python: connect('AF_VSOCK', '(2, 22)'), sees: /refused|not supported/ },
  {
    name: 'replacing the model socket',
    sh: 'rm -f /run/model/model.sock; echo x > /run/model/other; mv /run/model/model.sock /run/model/old && echo BREACH; test -S /run/model/model.sock || echo BREACH',
    sees: /Read-only file system|Permission denied/,
  },
].map((attempt) => ({ area: 'network', ...attempt }));

const namespaces: Attempt[] = [
  {
    name: 'mounting',
    sh: 'mount -t tmpfs x /tmp && echo BREACH; mount --bind / /tmp && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'making a read-only mount writable',
    sh: 'mount -o remount,rw,bind /usr && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'unmounting what covers',
    sh: 'umount /etc/passwd && echo BREACH; umount -l /proc && echo BREACH',
    sees: DENIED,
  },
  { name: 'a user namespace by unshare', sh: 'unshare -Urm true && echo BREACH', sees: DENIED },
  { name: 'a user namespace by clone', python: syscall('56, 0x10000000 | 17, 0, 0, 0, 0'), sees: /errno/ },
  {
    name: 'a user namespace by clone3',
    python: `
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
a = ctypes.create_string_buffer(struct.pack('11Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
r = libc.syscall(435, a, 88)
if r == 0: os._exit(0)
print('BREACH' if r > 0 else 'errno ' + os.strerror(ctypes.get_errno()))`,
    sees: /errno/,
  },
  {
    name: 'joining the first process’s namespaces',
    sh: 'nsenter -t 1 -m -u -i -n -p true && echo BREACH',
    sees: DENIED,
  },
  { name: 'another root directory', python: 'import os\nos.chroot("/tmp"); print("BREACH")', sees: DENIED },
  {
    name: 'becoming root',
    sh: 'python3 -c "import os; os.setuid(0)" && echo BREACH; su root -c true </dev/null && echo BREACH; cp /bin/sh x && chmod 6755 x && test "$(./x -pc "id -u")" = 0 && echo BREACH; true',
    sees: DENIED,
  },
  { name: 'the keys of the kernel', python: syscall('250, 0, -3, 1'), sees: DENIED },
  { name: 'loading a program into the kernel (bpf)', python: syscall('321, 5, 0, 0'), sees: DENIED },
  { name: 'io_uring, which the filter could not see into', python: syscall('425, 8, 0'), sees: DENIED },
  { name: 'userfaultfd', python: syscall('323, 1'), sees: DENIED },
].map((attempt) => ({ area: 'mounts and namespaces', ...attempt }));

const processes: Attempt[] = [
  { name: 'tracing process 1', python: syscall('101, 16, 1, 0, 0'), sees: DENIED },
  { name: 'reading another process’s memory', python: syscall('310, 1, 0, 0, 0, 0, 0'), sees: DENIED },
  {
    name: 'the agent’s memory and channel',
    sh: 'head -c 1 /proc/1/mem && echo BREACH; echo x > /proc/1/fd/1 && echo BREACH; ls /proc/1/fd && echo BREACH',
    sees: DENIED,
  },
  { name: 'killing the agent', sh: 'kill -9 1; kill -0 1 && echo alive', sees: /alive/ },
  {
    name: 'typing into the supervisor’s terminal',
    python:
      'import fcntl\nfor fd in (0, 1, 2):\n  try: fcntl.ioctl(fd, 0x5412, b"x"); print("BREACH")\n  except OSError as e: print(e)',
    sees: /Inappropriate ioctl|Input\/output|not permitted/,
  },
  {
    name: 'outliving a time-out',
    sh: '(trap "" TERM HUP; setsid nohup sleep 7171 >/dev/null 2>&1 &); trap "" TERM; sleep 7171',
    sees: /timed out/,
    timeout: 600,
  },
  {
    name: 'real-time priority',
    python: 'import os\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)); print("BREACH")',
    sees: DENIED,
  },
].map((attempt) => ({ area: 'processes', ...attempt }));

const cgroups: Attempt[] = [
  {
    name: 'raising one’s own limits',
    sh: 'for f in $(find /sys/fs/cgroup -name memory.limit_in_bytes -o -name memory.max -o -name pids.max 2>/dev/null | head -50); do echo max > $f && echo BREACH; done; echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes && echo BREACH',
    sees: /Permission denied|Read-only|No such file|nonexistent/,
  },
  {
    name: 'a group of one’s own',
    sh: 'mkdir /sys/fs/cgroup/memory/mine /sys/fs/cgroup/mine && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'a release agent, which the kernel runs as root',
    sh: 'mkdir c; mount -t cgroup -o memory c c && echo BREACH; echo /tmp/x > /sys/fs/cgroup/memory/release_agent && echo BREACH',
    sees: DENIED,
  },
].map((attempt) => ({ area: 'cgroups', ...attempt }));

const resources: Attempt[] = [
  { name: 'fork bomb', sh: 'b() { b | b & }; b & exec sleep 20', sees: /timed out/, timeout: 1500 },
  {
    name: 'memory bomb',
    python: 'x = []\nwhile True: x.append(bytearray(8 << 20))',
    sees: /SIGKILL|MemoryError/,
  },
  {
    name: 'filling the disk',
    sh: 'for d in /workspace /tmp /dev/shm /var/tmp; do head -c 3G /dev/zero > $d/big; rm -f $d/big; done',
    sees: /No space left/,
  },
  {
    name: 'filling the disk with empty files',
    python:
      'import os\nn = 0\ntry:\n  while n < 400000:\n    os.mkdir(f"d{n}"); n += 1\n  print("BREACH")\nexcept OSError as e: print(n, e)',
    sees: /No space left|SIGKILL|Cannot allocate/,
    timeout: 60_000,
  },
  { name: 'a flood of output', sh: 'yes | head -c 300M', sees: /truncated/, timeout: 60_000 },
  {
    name: 'more open files than allowed',
    sh: 'ulimit -n 1048576 && echo BREACH; true',
    sees: /Operation not permitted|bad|exceed/i,
  },
].map((attempt) => ({ area: 'resources', ...attempt }));

const collection: Attempt[] = [
  {
    name: 'a link to a host file, collected',
    sh: 'ln -s "$SECRET" loot && echo linked',
    sees: /linked/,
    then: 'export',
  },
  {
    name: 'a link to a host directory, collected',
    sh: 'ln -s "$(dirname "$SECRET")" loot && echo linked',
    sees: /linked/,
    then: 'export',
  },
  {
    name: 'a link to a host file, read through the sandbox',
    sh: 'ln -s "$SECRET" loot && echo linked',
    sees: /linked/,
    then: 'read',
  },
  {
    name: 'a link to a host file, written through the sandbox',
    sh: 'ln -s "$SECRET" loot && echo linked',
    sees: /linked/,
    then: 'write',
  },
  {
    name: 'a directory swapped for a link while it is collected',
    sh: 'mkdir d; echo i > d/f; (while :; do mv d e; ln -s "$(dirname "$SECRET")" d; rm d; mv e d; done) >/dev/null 2>&1 & echo linked',
    sees: /linked/,
    then: 'export',
  },
  {
    name: 'hard links to files that are not one’s own',
    sh: 'ln /etc/passwd mine && echo BREACH; ln /usr/bin/env mine2 && echo BREACH',
    sees: /cross-device|not permitted|Permission denied/,
  },
  {
    name: 'a name with .. in it',
    python:
      'import os\ntry: os.rename("/workspace/nothing", "/workspace/../../x")\nexcept OSError as e: print(e)\ntry: open("/workspace/..\\\\..\\\\x", "w"); print("linked")\nexcept OSError as e: print(e)',
    sees: /linked/,
    then: 'export',
  },
].map((attempt) => ({ area: 'file collection', ...attempt }) as Attempt);

const caches: Attempt[] = [
  {
    name: 'poisoning the runtime’s compile cache',
    sh: 'echo poison > /opt/runtime/cache/entry && echo BREACH; echo poison > /opt/runtime/cache/new && echo BREACH; rm -f /opt/runtime/cache/entry; mv /opt/runtime/cache /opt/runtime/old && echo BREACH; cat /opt/runtime/cache/entry',
    sees: /compiled/,
  },
  {
    name: 'changing the runtime itself',
    sh: 'chmod 777 /opt/runtime/tool && echo BREACH; echo x >> /opt/runtime/tool && echo BREACH; true',
    sees: DENIED,
  },
  {
    name: 'reading the verifier before grading',
    sh: 'find / -name "reward*" -not -path "/proc/*" 2>/dev/null | grep -v -E "^/(usr|sys|proc)/" && echo BREACH; cat "$REWARD" && echo BREACH',
    sees: DENIED,
  },
  {
    name: 'the verifier in the history of the task’s repository',
    sh: 'git -C /workspace log --all -p 2>&1 | grep -q ANSWER && echo BREACH; git -C /workspace status; git -C /workspace/.. log',
    sees: /not a git repository/,
  },
].map((attempt) => ({ area: 'caches and verifiers', ...attempt }));

/** All of them, in the order in which they are made: the loud ones last. */
export const ATTEMPTS: readonly Attempt[] = [
  ...hostFiles,
  ...hostSettings,
  ...others,
  ...network,
  ...namespaces,
  ...processes,
  ...cgroups,
  ...caches,
  ...collection,
  ...resources,
];
