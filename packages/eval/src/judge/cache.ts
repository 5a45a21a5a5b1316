import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeJsonAtomic } from '@treeward/base';
import { CONTRACT_VERSION } from './contract.js';
import type { JudgeAnswer, JudgeQuestion } from './model.js';

/** Valid replies on disk, by everything that decides them: model, both messages, sampling, number of the repeat. */
export class JudgeCache {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  key(model: string, { system, user, temperature, maxTokens }: JudgeQuestion, repeat: number): string {
    return createHash('sha256')
      .update(JSON.stringify([CONTRACT_VERSION, model, system, user, temperature, maxTokens, repeat]))
      .digest('hex');
  }

  get(key: string): JudgeAnswer | null {
    const file = this.#file(key);
    return existsSync(file) ? readJson<{ answer: JudgeAnswer }>(file).answer : null;
  }

  put(key: string, model: string, answer: JudgeAnswer): void {
    writeJsonAtomic(this.#file(key), { schema: 1, model, answer });
  }

  #file(key: string): string {
    return join(this.#directory, key.slice(0, 2), `${key}.json`);
  }
}
