import { randomStream, writeFileAtomic, type Random } from '@treeward/base';
import { renameSlots } from '@treeward/datasets';
import type { Message } from '@treeward/messages';
import { trainTokenizer } from '@treeward/policy';
import type { Demonstration } from './demonstrations.js';

function strings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(strings);
  return [];
}

const textsOf = (message: Message): string[] =>
  message.role === 'assistant'
    ? message.parts.flatMap((part) =>
        part.type === 'text'
          ? [part.text]
          : [part.name, ...Object.keys(part.arguments), ...strings(part.arguments)],
      )
    : message.role === 'system'
      ? []
      : [message.text.slice(0, 400)];

/** The corpus: recorded demonstrations as they are read, each under several renamings, with their tool manifests. */
function* corpus(
  demonstrations: readonly Demonstration[],
  renamings: number,
  random: Random,
): Generator<string> {
  for (const { conversation, task } of demonstrations) {
    for (const tool of conversation.tools) {
      yield tool.name;
      yield* Object.keys((tool.parameters['properties'] ?? {}) as object);
    }
    for (let k = 0; k < renamings; k++) {
      const rename = renameSlots(task, random);
      for (const message of conversation.messages) yield* textsOf(message).map(rename);
    }
  }
}

/** Byte-level BPE inside letter runs over what this policy will really read and say. */
export function makeTokenizer(
  demonstrations: readonly Demonstration[],
  vocabSize: number,
  out: string,
  seed: number,
): void {
  const texts = [...corpus(demonstrations, 8, randomStream(seed, 'tokenizer'))];
  writeFileAtomic(out, JSON.stringify(trainTokenizer(texts, vocabSize).toJson()) + '\n');
}
