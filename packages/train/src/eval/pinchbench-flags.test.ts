import { describe, expect, it } from 'vitest';
import { engineOf, thinkingFlag } from './pinchbench-flags.js';

const flags = (more: { model?: string; engine?: string }) => ({
  engine: 'llama',
  ...more,
});

describe('PinchBench’s own flags', () => {
  it.each([
    [{}, 'llama'],
    [{ model: 'anthropic/claude-x' }, 'anthropic:claude-x'],
    [{ model: 'openai/gpt-x' }, 'openai:gpt-x@https://api.openai.com/v1'],
    [{ model: 'openrouter/a/b:free' }, 'openai:a/b:free@https://openrouter.ai/api/v1'],
    [{ model: 'local/any', engine: 'openai:any@http://127.0.0.1:1/v1' }, 'openai:any@http://127.0.0.1:1/v1'],
  ])('%j is the engine %s', (more, engine) => expect(engineOf(flags(more))).toBe(engine));

  it.each([
    [{ model: 'somewhere/x' }, 'CLI_E_MODEL'],
    [{ model: 'x' }, 'CLI_E_MODEL'],
  ])('%j is refused', (more, code) =>
    expect(() => engineOf(flags(more))).toThrow(expect.objectContaining({ code }) as Error),
  );

  it.each([
    [undefined, 'agent-loop', null],
    ['off', 'agent-loop', null],
    ['high', 'claude-code', 'high'],
    ['minimal', 'openclaw', 'minimal'],
  ] as const)('--thinking %s for %s is %s', (level, harness, asked) =>
    expect(thinkingFlag(level, harness)).toBe(asked),
  );

  it('--thinking for a harness without such a setting is refused, with those that have one', () => {
    const refused = {
      code: 'CLI_E_THINKING',
      hints: ['these have: claude-code, openclaw, openclaw-gateway, codex, pi, opencode', 'or say off'],
    };
    expect(() => thinkingFlag('low', 'agent-loop')).toThrow(expect.objectContaining(refused) as Error);
  });
});
