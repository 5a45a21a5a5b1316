// Every implementation an operator's tests run through: the CPU one, the `.cu` source on CPU fibers, and a real device where
// there is one. vitest.config.mts builds the fibers addon before any test.
import { createRequire } from 'node:module';
import type { Backend, Binding } from '../binding.js';
import { candidatePaths, loadFrom } from '../load-binding.js';
import { builtProgram } from './built-programs.js';

export interface Implementation {
  name: 'cpu' | 'cuda on fibers' | 'cuda';
  binding: Binding;
  backend: Backend;
  /** Intermediates are float32 rather than float64: parity tests widen their tolerances. */
  single: boolean;
}

export const fibersPath = builtProgram('plain', 'treeward_on_fibers.node');

const own = loadFrom(candidatePaths()).binding;
const fibers = createRequire(import.meta.url)(fibersPath) as Binding;

export const implementations: readonly Implementation[] = [
  { name: 'cpu', binding: own, backend: 'cpu', single: false },
  { name: 'cuda on fibers', binding: fibers, backend: 'cuda', single: true },
  ...(own.cudaInfo().available
    ? [{ name: 'cuda', binding: own, backend: 'cuda', single: true } as const]
    : []),
];
