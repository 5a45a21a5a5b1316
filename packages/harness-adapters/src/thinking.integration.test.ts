import { BubblewrapProvider } from '@treeward/sandbox';
import { afterAll, describe, expect, it } from 'vitest';
import { adapterByName } from './registry.js';
import { runScripted } from './scripted/run.js';
import { inOrder, say } from './scripted/script.js';
import type { ThinkingLevel } from './thinking.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';
const sandboxes = new BubblewrapProvider({ run: 'harness-thinking' });
afterAll(() => sandboxes.close());

/** Where the level stands in the requests of each, and what `low` is there. */
const ASKED = [
  ['claude-code', 'thinking', expect.objectContaining({ type: 'adaptive' })],
  ['claude-code', 'output_config', expect.objectContaining({ effort: 'low' })],
  ['codex', 'reasoning', expect.objectContaining({ effort: 'low' })],
  ['pi', 'reasoning_effort', 'low'],
  ['opencode', 'reasoning_effort', 'low'],
  ['openclaw', 'reasoning_effort', 'low'],
  ['openclaw-gateway', 'reasoning_effort', 'low'],
] as const;

describe.runIf(full)('thinking, as the real CLIs ask for it (a minute: TREEWARD_TEST_FULL=1)', () => {
  it.for(ASKED)('%s: %s', async ([name, field, low], context) => {
    const adapter = adapterByName(name);
    if (!(await adapter.detect())) return context.skip(`skipped: ${name} is not installed`);
    const asked = async (thinking: ThinkingLevel): Promise<unknown> => {
      const { calls } = await runScripted(adapter, sandboxes, {
        tasks: [{ prompt: 'Say "Done.".', maxTurns: 2, thinking }],
        script: inOrder([say('Done.')]),
      });
      const call = calls.find(({ identity }) => identity.requestClass !== 'side');
      return (JSON.parse(call!.body) as Record<string, unknown>)[field];
    };
    const off = await asked('off');
    expect(await asked('low')).toEqual(low);
    expect(off).not.toEqual(low);
  });
});
