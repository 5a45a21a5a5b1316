import { afterEach, expect, it } from 'vitest';
import { ask } from './testing/client.js';
import { textIds } from './testing/fake-engine.js';
import {
  messagesBody,
  template,
  testGateway,
  type TestGateway,
  type TestRollout,
} from './testing/harness.js';

let test: TestGateway;
afterEach(() => test.dispose());

const ROLLOUTS = 1000;
const user = (content: unknown) => ({ role: 'user', content });
const said = (text: string) => ({ role: 'assistant', content: [{ type: 'text', text }] });

it('1,000 rollouts at once: each gets its own replies, each record holds its own text', async () => {
  test = testGateway();
  // A reply that names who asked, after a while that differs: nothing comes back in the order in which it was sent.
  test.engine.answer = ({ tag, sampling }) => {
    const tokens = textIds(template, `reply to ${tag} call ${sampling.seed.split('/')[1]}.`);
    return { tokens, logprobs: new Float32Array(tokens.length) };
  };
  test.engine.delayMs = 20;
  const rollouts = await Promise.all(Array.from({ length: ROLLOUTS }, (_, i) => test.open(`ro-${i}.`)));
  expect(new Set(rollouts.map(({ key }) => key)).size).toBe(ROLLOUTS);

  const run = async ({ id, socketPath, key }: TestRollout, index: number): Promise<string[]> => {
    const task = [user('the shared task'), user(`marker <${id}>`)];
    const headers = { 'x-rollout-id': `ro-${(index + 1) % ROLLOUTS}.` };
    const first = await ask(socketPath, { key, headers, body: messagesBody(task) });
    const more = [...task, said(first.json.content[0].text), user(`more <${id}>`)];
    const second = await ask(socketPath, { key, headers, body: messagesBody(more) });
    return [first, second].map(({ json }) => json.content[0].text as string);
  };
  const replies = await Promise.all(rollouts.map(run));
  const foreign = await Promise.all(
    rollouts
      .slice(0, 50)
      .map(({ socketPath }, i) =>
        ask(socketPath, { key: rollouts[i + 50]!.key, body: messagesBody([user('x')]) }),
      ),
  );
  expect(foreign.every(({ status }) => status === 401)).toBe(true);
  const summaries = await Promise.all(rollouts.map(({ id }) => test.gateway.close(id)));

  rollouts.forEach(({ id, events }, i) => {
    expect(replies[i]).toEqual([`reply to ${id} call 0.`, `reply to ${id} call 1.`]);
    expect(summaries[i]).toMatchObject({ calls: 2, pending: 0, engineFailure: null });
    const text = JSON.stringify(events());
    const named = new Set([...text.matchAll(/(?:reply to |<)(ro-\d+\.)/g)].map(([, name]) => name));
    expect([...named]).toEqual([id]);
  });
}, 180_000);
