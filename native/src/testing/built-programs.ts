// What build-fibers.ts has built.
import { fileURLToPath } from 'node:url';

const folders = { plain: 'tests', address: 'fibers-address/tests', thread: 'fibers-thread/tests' };

/** How a test program was compiled: as the addon is, with ASan and UBSan, or with TSan. */
export type Variant = keyof typeof folders;

export const builtProgram = (variant: Variant, name: string): string =>
  fileURLToPath(new URL(`../../build/${folders[variant]}/${name}`, import.meta.url));
