import type { Draw } from '../draw.js';
import type { Domain, Draft } from '../types.js';

export interface Family {
  name: string;
  domain: Domain;
  make(draw: Draw): Draft;
}

export const lines = (...rows: readonly string[]): string => rows.join('\n');
