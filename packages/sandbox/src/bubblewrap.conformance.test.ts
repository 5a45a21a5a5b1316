import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { BubblewrapProvider } from './bubblewrap.js';
import { sandboxConformance } from './testing/conformance.js';
import { scratch } from './testing/open.js';

const root = scratch();
const provider = new BubblewrapProvider({ root: join(root, 'root'), run: 'test' });
afterAll(async () => {
  await provider.close();
  rmSync(root, { recursive: true, force: true });
});

it('offers the tier that this user should have', async () => {
  const { tier, reasons } = await provider.probe();
  console.info(`tier ${tier}: ${reasons.join('; ')}`);
  // user-tier.test.ts re-runs this file without root and says what it expects.
  if (process.env['TREEWARD_EXPECT_TIER']) expect(tier).toBe(process.env['TREEWARD_EXPECT_TIER']);
  else expect(tier).not.toBe('none');
});

sandboxConformance('bubblewrap', () => provider);
