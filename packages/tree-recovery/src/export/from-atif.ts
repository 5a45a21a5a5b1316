import { TreewardError } from '@treeward/base';
import type { Json } from '@treeward/telemetry';
import type { AtifDocument, AtifStep } from './atif-types.js';

/** What could be read from a trajectory of another tool, and what a linear document cannot say. */
export interface ImportedTrajectory {
  trajectoryId: string;
  /** Canonical messages of the branch, in order. */
  messages: Json[];
  /** Sampled replies that carry token ids: index into `messages`, ids, logprobs where given. */
  replies: { message: number; tokens: number[]; logprobs: number[] | null }[];
  agents: ImportedTrajectory[];
  /** What is lost, one sentence each. */
  lost: string[];
}

/**
 * Reads an ATIF document. Lossy: it is one line of what may have been a tree.
 * @throws TreewardError TREE_E_ATIF when it is none
 */
export function importAtif(value: unknown): ImportedTrajectory {
  const document = value as Partial<AtifDocument> | null;
  if (typeof document !== 'object' || document === null || !Array.isArray(document.steps)) {
    throw new TreewardError('TREE_E_ATIF', 'this is no ATIF document: it has no list of steps', {
      hints: ['one document per line or file, as treeward recover --atif writes them'],
    });
  }
  const messages: Json[] = [];
  const replies: ImportedTrajectory['replies'] = [];
  let withoutIds = 0;
  let withoutLogprobs = 0;
  let copied = 0;
  for (const step of document.steps) {
    if (step.is_copied_context) copied++;
    for (const result of step.observation?.results ?? []) {
      messages.push({
        role: 'tool',
        callId: result.source_call_id ?? '',
        text: String(result.content ?? ''),
      });
    }
    if (step.source !== 'agent') {
      if (step.message) messages.push({ role: step.source, text: step.message });
      continue;
    }
    messages.push({ role: 'assistant', parts: partsOf(step) });
    const tokens = step.metrics?.completion_token_ids;
    if (!tokens) {
      withoutIds++;
      continue;
    }
    const given = step.metrics?.logprobs;
    const known = given?.length === tokens.length && given.every((one) => typeof one === 'number');
    if (!known) withoutLogprobs++;
    replies.push({ message: messages.length - 1, tokens, logprobs: known ? (given as number[]) : null });
  }
  const lost = [
    'which retries, rollbacks and branches there were beside this one: a document is one line',
    'prompt token ids, policy versions and sampling settings',
    ...(withoutIds > 0 ? [`the sampled ids of ${withoutIds} replies: they cannot train`] : []),
    ...(withoutLogprobs > 0 ? [`the logprobs of ${withoutLogprobs} replies: they cannot train`] : []),
    ...(copied > 0 ? [`where ${copied} copied steps were sampled: another document has them`] : []),
  ];
  return {
    trajectoryId: document.trajectory_id ?? '',
    messages,
    replies,
    agents: (document.subagent_trajectories ?? []).map(importAtif),
    lost,
  };
}

function partsOf(step: AtifStep): Json[] {
  const text: Json[] = step.message ? [{ type: 'text', text: step.message }] : [];
  const calls = (step.tool_calls ?? []).map((call): Json => ({
    type: 'tool_call',
    id: call.tool_call_id,
    name: call.function_name,
    arguments: call.arguments,
  }));
  return [...text, ...calls];
}
