import { describe, expect, it } from 'vitest';
import { engineOf } from './pinchbench-flags.js';

const flags = (more: { model?: string; thinking?: string; engine?: string }) => ({
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
    [{ thinking: 'off' }, 'llama'],
  ])('%j is the engine %s', (more, engine) => expect(engineOf(flags(more))).toBe(engine));

  it.each([
    [{ model: 'somewhere/x' }, 'CLI_E_MODEL'],
    [{ model: 'x' }, 'CLI_E_MODEL'],
    [{ thinking: 'high' }, 'CLI_E_THINKING'],
  ])('%j is refused', (more, code) =>
    expect(() => engineOf(flags(more))).toThrow(expect.objectContaining({ code }) as Error),
  );
});
