import { readRecord } from '@treeward/telemetry';
import { recoverTree } from './recover.js';
import type { RolloutTree } from './types.js';

/** @throws TreewardError RECORD_E_MISSING, RECORD_E_VERSION, RECORD_E_READ; anything less becomes an issue of the tree */
export function recoverDirectory(directory: string): RolloutTree {
  return recoverTree(readRecord(directory));
}
