import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { escapeSuite } from './testing/escape-suite.js';
import { scratch } from './testing/open.js';

const root = scratch();
const provider = new BubblewrapProvider({ root: join(root, 'root'), run: 'escape' });
afterAll(async () => {
  await provider.close();
  rmSync(root, { recursive: true, force: true });
});

escapeSuite('bubblewrap', () => provider);
