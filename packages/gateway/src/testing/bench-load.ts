/** What the bench sends: conversations like a coding harness's, padded to a size, without any real harness's text. */
const WORDS =
  'the file holds a list of names and every line ends with a number that somebody has to add up'.split(' ');

/** Text of about `length` characters that differs by `seed`. */
export function prose(length: number, seed: number): string {
  const parts: string[] = [`#${seed}`];
  let state = seed + 1;
  for (let size = 0; size < length;) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    const word = WORDS[state % WORDS.length]!;
    parts.push(word);
    size += word.length + 1;
  }
  return parts.join(' ').slice(0, length);
}

export type BodySize = 'small' | '50KB' | '1MB';

/** Characters of system prompt, of each of twelve tools, and of the user's first message. */
const SIZES: Record<BodySize, { system: number; tool: number; task: number }> = {
  small: { system: 300, tool: 60, task: 400 },
  '50KB': { system: 8000, tool: 2300, task: 8000 },
  '1MB': { system: 8000, tool: 2300, task: 960_000 },
};

export const REPLY_TEXT = 'I have read the file; next comes the other one.';

/** One rollout's conversation: bodies that grow by a reply and a result each. */
export class Conversation {
  readonly #head: string;
  readonly #tail: string;
  #history: string;
  #turn = 0;

  constructor(size: BodySize, stream: boolean, seed: number) {
    const { system, tool, task } = SIZES[size];
    const tools = Array.from({ length: 12 }, (_, i) => ({
      name: `Tool${i}`,
      description: prose(tool, i),
      input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    }));
    const fixed = { model: 'policy', max_tokens: 1000, stream, system: prose(system, 0), tools };
    this.#head = `${JSON.stringify(fixed).slice(0, -1)},"messages":[`;
    this.#tail = ']}';
    this.#history = JSON.stringify({ role: 'user', content: prose(task, 1000 + seed) });
  }

  /** The next request of this conversation. */
  next(): Buffer {
    const body = Buffer.from(this.#head + this.#history + this.#tail);
    const reply = { role: 'assistant', content: [{ type: 'text', text: REPLY_TEXT }] };
    const result = { role: 'user', content: prose(200, 5000 + this.#turn++) };
    this.#history += `,${JSON.stringify(reply)},${JSON.stringify(result)}`;
    return body;
  }
}
