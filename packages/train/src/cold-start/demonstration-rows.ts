import type { Message, ReplyPart } from '@treeward/messages';
import type { Random } from '@treeward/base';
import type { PackedTrees } from '@treeward/learner';
import type { CompactTemplate } from '@treeward/policy';
import type { Conversation } from '@treeward/rollout';

/** One training sequence. `weight_T` is the loss weight of predicting each token; the first token is never predicted. */
export interface Row {
  tokens_T: Int32Array;
  weight_T: Float32Array;
}

/** What the policy says weighs 1, what it reads a little: the model learns the world's language, not to speak it. */
export const CONTEXT_WEIGHT = 0.1;

const mapValue = (value: unknown, rename: (text: string) => string): unknown => {
  if (typeof value === 'string') return rename(value);
  if (Array.isArray(value)) return value.map((item) => mapValue(item, rename));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mapValue(inner, rename)]));
  }
  return value;
};

function renameMessage(message: Message, rename: (text: string) => string): Message {
  if (message.role !== 'assistant') return { ...message, text: rename(message.text) };
  const parts = message.parts.map((part): ReplyPart =>
    part.type === 'text'
      ? { ...part, text: rename(part.text) }
      : { ...part, arguments: mapValue(part.arguments, rename) as Record<string, unknown> },
  );
  return { role: 'assistant', parts };
}

/**
 * A recorded demonstration as a training sequence, with its slots consistently renamed: another valid task of the same shape,
 * read in the same real harness. These are demonstrator's texts: encoding them is right; sampled tokens never come this way.
 */
export function demonstrationRow(
  conversation: Conversation,
  template: CompactTemplate,
  rename: (text: string) => string,
): Row {
  const pieces: [Int32Array, number][] = [[template.head(conversation.tools), CONTEXT_WEIGHT]];
  for (const message of conversation.messages) {
    const renamed = renameMessage(message, rename);
    if (renamed.role === 'assistant')
      pieces.push([template.generation, CONTEXT_WEIGHT], [template.reply(renamed.parts), 1]);
    else pieces.push([template.message(renamed), CONTEXT_WEIGHT]);
  }
  return joinRow(pieces);
}

/** The same conversation up to one of its calls, which is then garbled: a malformed attempt as a branch of its own. */
export function malformedRow(
  conversation: Conversation,
  template: CompactTemplate,
  rename: (text: string) => string,
  separator: number,
  random: Random,
): Row | null {
  const turns = conversation.messages.flatMap((message, index) =>
    message.role === 'assistant' && message.parts[0]?.type === 'tool_call' ? [index] : [],
  );
  if (turns.length === 0) return null;
  const cut = random.pick(turns);
  const before = demonstrationRow(
    { tools: conversation.tools, messages: conversation.messages.slice(0, cut) },
    template,
    rename,
  );
  const turn = renameMessage(conversation.messages[cut]!, rename) as Extract<Message, { role: 'assistant' }>;
  const reply = [...template.reply(turn.parts)];
  reply.splice(reply.indexOf(separator), 1); // an argument without its <eq>
  return joinRow([
    [before.tokens_T, 0],
    [template.generation, 0],
    [Int32Array.from(reply), 1],
  ]);
}

function joinRow(pieces: readonly [Int32Array, number][]): Row {
  const total = pieces.reduce((sum, [ids]) => sum + ids.length, 0);
  const tokens_T = new Int32Array(total);
  const weight_T = new Float32Array(total);
  let at = 0;
  for (const [ids, weight] of pieces) {
    tokens_T.set(ids, at);
    weight_T.fill(weight, at, at + ids.length);
    at += ids.length;
  }
  weight_T[0] = 0;
  return { tokens_T, weight_T };
}

export function packRows(rows: readonly Row[]): PackedTrees {
  const total = rows.reduce((sum, row) => sum + row.tokens_T.length, 0);
  const packed: PackedTrees = {
    rowStart_B1: new Int32Array(rows.length + 1),
    tokens_T: new Int32Array(total),
    owned_T: new Uint8Array(total),
    rolloutLogprobs_T: new Float32Array(total).fill(Number.NaN),
    advantages_T: new Float32Array(total),
    temperature_T: new Float32Array(total).fill(1),
    rollout_B: Int32Array.from(rows, (_, index) => index),
    bannedIds: [],
    numRollouts: rows.length,
  };
  let at = 0;
  rows.forEach((row, index) => {
    packed.tokens_T.set(row.tokens_T, at);
    packed.advantages_T.set(row.weight_T, at);
    row.weight_T.forEach((weight, t) => {
      packed.owned_T[at + t] = weight > 0 ? 1 : 0;
    });
    at += row.tokens_T.length;
    packed.rowStart_B1[index + 1] = at;
  });
  return packed;
}
