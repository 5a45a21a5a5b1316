import { actions } from './actions.js';
import { bug } from './bug.js';
import { bump } from './bump.js';
import { card } from './card.js';
import { config } from './config.js';
import type { Family } from './family.js';
import { fill } from './fill.js';
import { kb } from './kb.js';
import { lookup } from './lookup.js';
import { max } from './max.js';
import { order } from './order.js';
import { reply } from './reply.js';
import { runsave } from './runsave.js';

/** Two per domain. The order is part of what a task index means: append, never reorder. */
export const FAMILIES: readonly Family[] = [
  actions,
  reply,
  config,
  runsave,
  lookup,
  max,
  fill,
  card,
  order,
  kb,
  bug,
  bump,
];
