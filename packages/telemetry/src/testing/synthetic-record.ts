import type { RecordEvent } from '../types.js';
import type { RecordWriter } from '../writer.js';

const WORDS =
  'the file read error test output line of import return value path node step found fix done check list total row'.split(
    ' ',
  );

/**
 * Writes a long rollout, and closes the writer, as the gateway writes it: per call a tool result, the prompt it grew, a reply with a tool call,
 * the command that ran and what it changed. About 6 KB a call, half of it tokens.bin; text in every sixth call is not
 * ASCII. The same `seed` gives the same bytes.
 */
export async function writeSyntheticRecord(
  writer: RecordWriter,
  { calls, seed }: { calls: number; seed: number },
): Promise<void> {
  let state = seed | 1;
  const draw = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  const prose = (words: number, accents: boolean): string => {
    const parts = Array.from({ length: words }, () => WORDS[draw(WORDS.length)]!);
    if (accents) parts.push('Grüße', '→', '✓');
    return parts.map((word, i) => (i % 12 === 11 ? `${word}\n` : word)).join(' ');
  };
  const hash = (): string => `${draw(1 << 23).toString(16)}${draw(1 << 23).toString(16)}`;
  const ids = (count: number): Int32Array => Int32Array.from({ length: count }, () => draw(150_000));
  let length = 0;
  writer.append({
    type: 'rollout.start',
    version: 1,
    minor: 1,
    rolloutId: `synthetic-${seed}`,
    time: 1e12,
    template: 'chatml',
    labels: { task: 'task_0001', harness: 'claude-code', group: '3' },
  });
  for (let call = 0; call < calls; call++) {
    const time = 1e12 + 1000 * call;
    const accents = call % 6 === 0;
    const parent = call === 0 ? null : call - 1;
    const appended = ids(350 + draw(100));
    const sampled = ids(100 + draw(100));
    const base = length;
    length += appended.length;
    const events: RecordEvent[] = [
      {
        type: 'call.start',
        call,
        time,
        dialect: 'anthropic',
        headers: { 'user-agent': 'claude-cli/2.0', 'anthropic-version': '2023-06-01', 'x-app': 'cli' },
        bodyHash: hash(),
        identity: { session: 'a7b0', requestClass: 'main', depth: 0 },
        messages: {
          parent,
          kept: 2 * call,
          appended: [
            {
              role: 'tool',
              id: `toolu_${call}`,
              parts: [{ type: 'text', text: prose(150 + draw(150), accents) }],
            },
          ],
        },
        tools: { hash: 'b0e1c2' },
        requested: { model: 'policy', max_tokens: 4096, temperature: 1, stream: true },
        unknown: [],
      },
      {
        type: 'call.prompt',
        call,
        prompt: { parent, kept: base, appended: writer.tokens(appended), length, hash: hash() },
        graft: { reason: parent === null ? 'root' : 'reply', keptMessages: 2 * call },
      },
      {
        type: 'call.sampled',
        call,
        time: time + 400,
        tokens: writer.tokens(sampled),
        logprobs: writer.logprobs(Float32Array.from(sampled, () => -draw(1000) / 256)),
        finish: 'stop',
        policy: { id: 'policy', version: call >> 6 },
        sampling: { temperature: 1, top_p: 1, bannedIds: [151_643, 151_645] },
        ids: 'engine',
        reply: {
          parts: [
            { type: 'text', text: prose(60 + draw(60), accents) },
            {
              type: 'tool_call',
              id: `toolu_${call + 1}`,
              name: 'Bash',
              arguments: { command: prose(20, false) },
            },
          ],
        },
      },
      {
        type: 'call.end',
        call,
        time: time + 410,
        firstByte: time + 401,
        delivery: 'complete',
        cause: 'done',
        status: 200,
        sent: { bytes: 2048, events: 31 },
      },
      {
        type: 'tool.exec',
        source: 'strace',
        pid: 100 + call,
        parentPid: 7,
        command: prose(20, false),
        start: time + 420,
        end: time + 900,
        code: 0,
      },
      {
        type: 'workspace',
        time: time + 990,
        call,
        changes: [{ path: `src/${WORDS[draw(WORDS.length)]}.ts`, kind: 'modify', size: draw(9000) }],
      },
    ];
    length += sampled.length;
    for (const event of events) writer.append(event);
    await writer.drain();
  }
  writer.append({ type: 'process.exit', time: 1e12 + 1000 * calls, code: 0, signal: null, timedOut: false });
  writer.append({ type: 'verifier', time: 1e12 + 1000 * calls, reward: 1, scores: { tests: 1 } });
  writer.append({ type: 'rollout.end', time: 1e12 + 1000 * calls + 1, status: 'completed' });
  await writer.close();
}
