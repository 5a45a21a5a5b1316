import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { BubblewrapProvider } from '@treeward/sandbox';
import { afterAll, describe, expect, test } from 'vitest';
import { adapterByName, adapters } from '../registry.js';
import type { ProbeFacts } from './facts.js';
import { expectedFile, probeHarness } from './probe.js';

const provider = new BubblewrapProvider({ run: 'probe' });
const update = process.env['TREEWARD_UPDATE_PROBES'] === '1';
const full = process.env['TREEWARD_TEST_FULL'] === '1';
/** The others are the same three calls as in the adapters' tests, and start slowly. */
const QUICK = ['agent-loop', 'claude-code', 'codex', 'pi'];

describe('behaviour probe', () => {
  for (const adapter of adapters) {
    const { name } = adapter;
    test(`${name} behaves as it did`, async (context) => {
      if (!(await adapter.detect())) return context.skip(`skipped: ${name} not installed`);
      if (!full && !update && !QUICK.includes(name)) {
        return context.skip(`skipped: ${name} starts slowly; TREEWARD_TEST_FULL=1 runs it`);
      }
      const { facts, warnings } = await probeHarness(adapter, { provider });
      if (update) {
        const file = fileURLToPath(expectedFile);
        const known = JSON.parse(readFileSync(file, 'utf8')) as Record<string, ProbeFacts>;
        writeFileSync(file, `${JSON.stringify({ ...known, [name]: facts }, null, 2)}\n`);
      } else expect(warnings).toEqual([]);
    });
  }

  test('a CLI that behaves otherwise, and another version, are told', async () => {
    const loop = adapterByName('agent-loop');
    const { facts } = await probeHarness(loop, { provider });
    const { warnings } = await probeHarness(
      { ...loop, pin: '9.9.9' },
      { provider, expected: { ...facts, tools: ['read'], stream: !facts.stream } },
    );
    expect(warnings).toEqual([
      'agent-loop: version 1.0.0 is installed, 9.9.9 was tested',
      'agent-loop: tools is ["edit","exec","read","write"], expected ["read"]',
      'agent-loop: stream is false, expected true',
    ]);
  });
});

afterAll(() => provider.close());
