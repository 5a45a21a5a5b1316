import { fileURLToPath } from 'node:url';
import { importAtif, recoverTree, treeToAtif } from '@treeward/tree-recovery';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { loadBehaviours } from '../simulate/behaviour.js';
import { simulateRollout } from '../simulate/rollout.js';

// The format as it is documented (1.7), written down independently of the code that exports it.
const extra = z.record(z.string(), z.json());
const step = z.strictObject({
  step_id: z.number().int().min(1),
  timestamp: z.iso.datetime().optional(),
  source: z.enum(['system', 'user', 'agent']),
  message: z.string(),
  reasoning_content: z.string().optional(),
  model_name: z.string().optional(),
  tool_calls: z
    .array(
      z.strictObject({
        tool_call_id: z.string(),
        function_name: z.string().min(1),
        arguments: z.record(z.string(), z.json()),
      }),
    )
    .optional(),
  observation: z
    .strictObject({
      results: z.array(
        z.strictObject({
          source_call_id: z.string().optional(),
          content: z.string(),
          subagent_trajectory_ref: z.array(z.looseObject({ trajectory_id: z.string() })).optional(),
        }),
      ),
    })
    .optional(),
  metrics: z
    .strictObject({
      prompt_tokens: z.number().int().min(0).optional(),
      completion_tokens: z.number().int().min(0).optional(),
      cached_tokens: z.number().int().min(0).optional(),
      cost_usd: z.number().optional(),
      prompt_token_ids: z.array(z.number().int()).optional(),
      completion_token_ids: z.array(z.number().int()).optional(),
      logprobs: z.array(z.number().nullable()).optional(),
    })
    .optional(),
  is_copied_context: z.boolean().optional(),
  llm_call_count: z.number().int().optional(),
  extra: extra.optional(),
});
const atif = z.strictObject({
  schema_version: z.literal('ATIF-v1.7'),
  session_id: z.string().min(1),
  trajectory_id: z.string().min(1),
  agent: z.strictObject({ name: z.string(), version: z.string(), model_name: z.string() }),
  steps: z.array(step).min(1),
  final_metrics: z.looseObject({}).optional(),
  continued_trajectory_ref: z.string().optional(),
  get subagent_trajectories() {
    return z.array(atif).optional();
  },
  extra: extra.optional(),
});
type Atif = z.infer<typeof atif>;

const all = (documents: readonly Atif[]): Atif[] =>
  documents.flatMap((one) => [one, ...all(one.subagent_trajectories ?? [])]);

const behaviours = loadBehaviours(fileURLToPath(new URL('../../../behaviours/tuning', import.meta.url)));

it.each(behaviours.map((behaviour) => [behaviour.name, behaviour] as const))(
  'what is exported of %s is ATIF',
  async (_name, behaviour) => {
    const { record, truth } = await simulateRollout(behaviour, 'atif/0');
    const input = record.input();
    const tree = recoverTree(input);
    const documents = z.array(atif).parse(JSON.parse(JSON.stringify(treeToAtif(tree, input))));
    const trajectories = all(documents);
    expect(new Set(trajectories.map((one) => one.trajectory_id)).size).toBe(trajectories.length);
    for (const { steps } of trajectories) {
      expect(steps.map((one) => one.step_id)).toEqual(steps.map((_, index) => index + 1));
    }
    // Results and sub-agents point to what is there.
    const known = new Set(trajectories.map((one) => one.trajectory_id));
    const results = trajectories.flatMap(({ steps }) =>
      steps.flatMap((one) => one.observation?.results ?? []),
    );
    const refs = results.flatMap((one) => one.subagent_trajectory_ref ?? []);
    for (const { trajectory_id } of refs) expect(known).toContain(trajectory_id);
    // Each sampled reply of the work stands in exactly one step that is no copy.
    const sampled = trajectories.flatMap(({ steps }) =>
      steps.filter(
        (one) => one.is_copied_context !== true && one.metrics?.completion_token_ids !== undefined,
      ),
    );
    const tokens = sampled.reduce((sum, one) => sum + one.metrics!.completion_token_ids!.length, 0);
    const work = tree.calls.filter(({ role, actionNode }) => role !== 'side' && actionNode !== -1);
    const owned = work.reduce((sum, { actionNode }) => {
      return sum + tree.nodes.end_N[actionNode]! - tree.nodes.start_N[actionNode]!;
    }, 0);
    expect({ replies: sampled.length, tokens }).toEqual({ replies: work.length, tokens: owned });
    expect(truth.calls.length).toBeGreaterThan(0);
    expect(importAtif(treeToAtif(tree, input)[0]!).lost.length).toBeGreaterThan(0);
  },
);
