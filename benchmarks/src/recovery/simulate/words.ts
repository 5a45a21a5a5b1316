import type { Random } from '@treeward/base';

const SYLLABLES = 'ba de fi go lu ma ne pi ro su ta ve xi zo ka le mi nu po ra'.split(' ');

/** A small vocabulary, so that different texts share many words as real ones do. */
const WORDS = Array.from({ length: 400 }, (_, i) => SYLLABLES[i % 20]! + SYLLABLES[Math.floor(i / 20)]!);

/** What models and tools say again and again: equal texts at different places. */
const COMMON_REPLIES = [
  'Done.',
  'Let me check.',
  'All tests pass now.',
  'I will continue with the next step.',
];
const COMMON_RESULTS = ['ok', '', 'exit code 0', 'File written.', 'No matches found'];
const TOOLS = ['read', 'exec', 'write', 'edit'];

/** Texts of a rollout, drawn from one stream. */
export class Words {
  readonly #random: Random;
  readonly #common: { reply: number; result: number };

  constructor(random: Random, common: { reply: number; result: number }) {
    this.#random = random;
    this.#common = common;
  }

  some(range: readonly [number, number]): string {
    const [from, to] = range;
    const count = from + this.#random.below(to - from + 1);
    return Array.from({ length: count }, () => this.#random.pick(WORDS)).join(' ');
  }

  reply(range: readonly [number, number]): string {
    return this.#random.next() < this.#common.reply ? this.#random.pick(COMMON_REPLIES) : this.some(range);
  }

  result(range: readonly [number, number]): string {
    return this.#random.next() < this.#common.result ? this.#random.pick(COMMON_RESULTS) : this.some(range);
  }

  tool(): { name: string; arguments: Record<string, unknown> } {
    const name = this.#random.pick(TOOLS);
    const value = this.#random.next() < this.#common.result ? 'npm test' : this.some([1, 4]);
    return name === 'exec'
      ? { name, arguments: { command: value } }
      : {
          name,
          arguments: { path: `${this.#random.pick(WORDS)}.ts`, ...(name !== 'read' && { content: value }) },
        };
  }
}
