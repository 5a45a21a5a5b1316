import { DENIED_SYSCALLS } from '../seccomp.js';

const EPERM = 1;
const ENOSYS = 38;
/** CLONE_NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWNS. */
const NAMESPACE_FLAGS = [0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000];

/**
 * The deny list of seccomp.ts as a container daemon takes it. Two rules more, because a container has no
 * `--disable-userns`: no `clone` with a namespace flag, and no `clone3`, whose flags lie in memory that no filter can
 * read (the C library falls back to `clone`). One architecture, so that the others' numbers are no way round.
 */
export function seccompProfile(): string {
  const deny = (names: readonly string[], errno: number, args: readonly object[] = []) => ({
    names,
    action: 'SCMP_ACT_ERRNO',
    errnoRet: errno,
    args,
  });
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ALLOW',
    architectures: ['SCMP_ARCH_X86_64'],
    syscalls: [
      deny(Object.keys(DENIED_SYSCALLS), EPERM),
      deny(['clone3'], ENOSYS),
      ...NAMESPACE_FLAGS.map((flag) =>
        deny(['clone'], EPERM, [{ index: 0, value: flag, valueTwo: flag, op: 'SCMP_CMP_MASKED_EQ' }]),
      ),
    ],
  });
}
