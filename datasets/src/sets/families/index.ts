import type { SetFamily } from '../set-task.js';
import { salesSummary } from './sales-summary.js';

/** Every family of the sets, in the order of their folders' names. */
export const SET_FAMILIES: readonly SetFamily[] = [salesSummary];
