import { TreewardError } from '@treeward/base';

/** x86_64 system calls that no task needs and that widen the kernel's surface, by number. */
export const DENIED_SYSCALLS: Readonly<Record<string, number>> = {
  ptrace: 101,
  pivot_root: 155,
  mount: 165,
  umount2: 166,
  init_module: 175,
  delete_module: 176,
  kexec_load: 246,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  unshare: 272,
  perf_event_open: 298,
  name_to_handle_at: 303,
  open_by_handle_at: 304,
  setns: 308,
  process_vm_readv: 310,
  process_vm_writev: 311,
  finit_module: 313,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323,
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  pidfd_getfd: 438,
  mount_setattr: 442,
};

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER_OR_EQUAL = 0x35;
const RETURN = 0x06;
const KILL_PROCESS = 0x80000000;
const EPERM = 0x00050001;
const ALLOW = 0x7fff0000;
const AUDIT_ARCH_X86_64 = 0xc000003e;
const X32_BIT = 0x40000000;

/**
 * A classic BPF program as `bwrap --seccomp` reads it: 8 bytes per instruction (u16 code, u8 jt, u8 jf, u32 k).
 * @throws TreewardError SANDBOX_E_TIER on another architecture: a filter by x86_64 numbers would filter nothing there
 */
export function seccompProgram(arch: string = process.arch): Buffer {
  if (arch !== 'x64') {
    throw new TreewardError('SANDBOX_E_TIER', `no seccomp table for ${arch}: it would run unfiltered`, {
      hints: ['use an x86_64 machine'],
    });
  }
  const program: [code: number, jt: number, jf: number, k: number][] = [
    [LOAD, 0, 0, 4],
    [JUMP_EQUAL, 1, 0, AUDIT_ARCH_X86_64],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, 0],
    [JUMP_GREATER_OR_EQUAL, 0, 1, X32_BIT],
    [RETURN, 0, 0, EPERM],
    ...Object.values(DENIED_SYSCALLS).flatMap((number): [number, number, number, number][] => [
      [JUMP_EQUAL, 0, 1, number],
      [RETURN, 0, 0, EPERM],
    ]),
    [RETURN, 0, 0, ALLOW],
  ];
  const out = Buffer.alloc(program.length * 8);
  program.forEach(([code, jt, jf, k], i) => {
    out.writeUInt16LE(code, i * 8);
    out.writeUInt8(jt, i * 8 + 2);
    out.writeUInt8(jf, i * 8 + 3);
    out.writeUInt32LE(k, i * 8 + 4);
  });
  return out;
}
