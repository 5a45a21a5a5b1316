import { INFRASTRUCTURE, type RolloutResult } from '@treeward/rollout';
import type { RolloutTree } from '@treeward/tree-recovery';
import { mean, spread, type Metrics } from './metrics.js';

/**
 * What a batch was, before the learner saw it. `all` counts every rollout that has a number, `effective` those with an
 * advantage that is not zero; failures are counted apart and never averaged in.
 *
 * @param votes_R the advantages a tree trains with: its own, or each call's; null where a critic gives them
 */
export function batchMetrics(
  results: readonly RolloutResult[],
  trees: readonly RolloutTree[],
  votes_R: readonly (readonly number[])[] | null,
): Metrics {
  const metrics: Metrics = { 'progress/rollouts': results.length };
  const known = results.filter((result) => result.reward !== null);
  Object.assign(
    metrics,
    spread(
      'reward/all',
      known.map((result) => result.reward!),
    ),
  );
  for (const harness of new Set(results.map((result) => result.harness))) {
    Object.assign(
      metrics,
      spread(
        `reward/all/${harness}`,
        known.filter((result) => result.harness === harness).map((result) => result.reward!),
      ),
    );
  }
  const effective = trees
    .filter((_, index) => votes_R === null || votes_R[index]!.some((vote) => vote !== 0))
    .flatMap((tree) => (tree.reward === null ? [] : [tree.reward]));
  Object.assign(metrics, spread('reward/effective', effective));

  const groups = new Map<string, number[]>();
  for (const result of known) groups.set(result.group, [...(groups.get(result.group) ?? []), result.reward!]);
  const share = (test: (rewards: number[]) => boolean): number =>
    [...groups.values()].filter(test).length / groups.size;
  if (groups.size > 0) {
    metrics['group/frac_all_good'] = share((rewards) => rewards.every((reward) => reward >= 0.999));
    metrics['group/frac_all_bad'] = share((rewards) => rewards.every((reward) => reward <= 0.001));
    metrics['group/frac_zero_var'] = share((rewards) => rewards.every((reward) => reward === rewards[0]));
  }
  for (const result of results) {
    if (!result.fault) continue;
    const name = `fault/${result.fault.kind}`;
    metrics[name] = (metrics[name] ?? 0) + 1;
  }
  metrics['fault/infrastructure'] = results.filter(
    (result) => result.fault && INFRASTRUCTURE.has(result.fault.kind),
  ).length;
  metrics['policy/malformed'] = mean(results.map((result) => result.malformed));
  metrics['progress/sampled_tokens'] = results.reduce((sum, result) => sum + result.sampledTokens, 0);

  if (trees.length > 0) {
    const calls = trees.flatMap((tree) => tree.calls);
    metrics['tree/num_calls'] = calls.length / trees.length;
    metrics['tree/num_nodes'] = mean(trees.map((tree) => tree.nodes.parent_N.length));
    metrics['tree/depth'] = mean(trees.map((tree) => tree.nodes.depth_N.reduce((a, b) => Math.max(a, b), 0)));
    for (const type of ['retry', 'ambiguous'] as const) {
      metrics[type === 'retry' ? 'tree/retries' : 'tree/ambiguous'] = mean(
        trees.map((tree) => tree.edges.filter((edge) => edge.type === type).length),
      );
    }
    metrics['tree/untrained_calls'] = calls.filter((call) => call.untrained !== null).length;
    metrics['off_policy/version_unknown'] = calls.filter(
      (call) => call.actionNode >= 0 && call.policyVersion === null,
    ).length;
  }
  const votes = votes_R?.flat() ?? [];
  if (votes.length > 0) {
    metrics['adv/mean'] = mean(votes);
    metrics['adv/std'] = Math.sqrt(mean(votes.map((vote) => (vote - metrics['adv/mean']!) ** 2)));
    metrics['adv/frac_zero'] = votes.filter((vote) => vote === 0).length / votes.length;
  }
  return metrics;
}
