import type { CallPrompt, RecordEvent, Span } from '@treeward/telemetry';
import type { RecordInput } from '../recover.js';
import { TokenStore } from '../token-store.js';
import { pathTokens } from '../tree-paths.js';
import type { RolloutTree } from '../types.js';

/**
 * A record that says what the tree says and no more: every event once, in causal order, tokens from the tree. Recovering
 * it gives the tree again.
 */
export function treeToRecord(tree: RolloutTree, record: RecordInput): RecordInput {
  const ids = new TokenStore();
  const span = (tokens: Int32Array, logprobs: Float32Array | null = null): Span => ({
    offset: 4 * ids.push(tokens, logprobs),
    count: tokens.length,
  });
  const seen = new Set<string>();
  const once = record.events.filter((event) => {
    const text = JSON.stringify(event);
    return seen.has(text) ? false : seen.add(text);
  });
  const known = new Map(tree.calls.map((call) => [call.call, call]));
  const events = once.map((event): RecordEvent => {
    const call = 'call' in event && event.call !== null ? known.get(event.call) : undefined;
    if (!call) return event;
    if (event.type === 'call.prompt') {
      const tokens =
        call.promptNode === -1
          ? record.tokens(event.prompt.appended)
          : appended(tree, call.promptNode, event);
      const at = tokens ? span(tokens) : nowhere(event.prompt.appended);
      return { ...event, prompt: { ...event.prompt, appended: at } };
    }
    if (event.type !== 'call.sampled') return event;
    if (call.actionNode === -1) {
      const [tokens, logprobs] = [record.tokens(event.tokens), record.logprobs(event.logprobs)];
      return {
        ...event,
        tokens: tokens ? span(tokens) : nowhere(event.tokens),
        logprobs: logprobs ? span(new Int32Array(logprobs.length), logprobs) : nowhere(event.logprobs),
      };
    }
    const { start_N, end_N } = tree.nodes;
    const [start, end] = [start_N[call.actionNode], end_N[call.actionNode]];
    const tokens = span(tree.tokens_T.subarray(start, end), tree.logprobs_T.subarray(start, end));
    // Logprobs that do not fit their tokens are not in the tree; the event keeps saying so.
    const fits = event.logprobs.count === tokens.count && record.logprobs(event.logprobs) !== null;
    return { ...event, tokens, logprobs: fits ? tokens : nowhere(event.logprobs) };
  });
  const order = new Map(tree.calls.map(({ call }, at) => [call, at]));
  const place = (event: RecordEvent): number => {
    if (event.type === 'rollout.start') return -1;
    return 'call' in event && event.call !== null ? (order.get(event.call) ?? Infinity) : Infinity;
  };
  events.sort((a, b) => (place(a) === place(b) ? 0 : place(a) - place(b)));
  const within = ({ offset, count }: Span): boolean => offset + 4 * count <= 4 * ids.length;
  const slice = <T>(at: Span, of: { slice(from: number, to: number): T }): T | null =>
    within(at) ? of.slice(at.offset / 4, at.offset / 4 + at.count) : null;
  return {
    events,
    issues: record.issues,
    tokens: (at) => slice(at, ids.ids),
    logprobs: (at) => slice(at, ids.logprobs),
  };
}

/** A span that lies outside, as the record's own did. */
const nowhere = ({ count }: Span): Span => ({ offset: 2 ** 40, count });

function appended(tree: RolloutTree, promptNode: number, { prompt }: CallPrompt): Int32Array {
  return pathTokens(tree, promptNode).subarray(prompt.parent === null ? 0 : prompt.kept);
}
