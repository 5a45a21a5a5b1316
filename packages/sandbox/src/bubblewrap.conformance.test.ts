import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { sandboxConformance, scratch } from './testing/conformance.js';

const root = scratch();
const provider = new BubblewrapProvider({ root: join(root, 'root'), run: 'test' });
afterAll(async () => {
  await provider.close();
  rmSync(root, { recursive: true, force: true });
});

sandboxConformance('bubblewrap', () => provider);
