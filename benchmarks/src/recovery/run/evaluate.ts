import { recoverTree, type RolloutTree } from '@treeward/tree-recovery';
import { applyFaults, liveFaults, type Condition } from '../faults/conditions.js';
import { advantagesAlong, wrongShare, type Advantages } from '../score/advantage.js';
import { linearised, messagePrefix, tokenPrefix, type Parents } from '../score/baselines.js';
import { acrossLost, addCounts, scoreEdges, type EdgeScore } from '../score/edge-score.js';
import { scoreOwnership } from '../score/ownership.js';
import { childrenOf, treeLineage, trueLineage, type Successors } from '../score/successors.js';
import type { Behaviour } from '../simulate/behaviour.js';
import { simulateRollout, type SimulatedRollout } from '../simulate/rollout.js';
import type { Truth } from '../simulate/truth.js';
import type { Failure, Tally } from './tally.js';

const LAMBDA = 0.95;
/** Failures kept per rollout: enough to see a pattern. */
const KEPT_FAILURES = 20;

/** One rollout: simulate → record → faults → recover → score. */
export async function evaluate(
  behaviour: Behaviour,
  seed: string,
  condition: Condition,
  tally: Tally,
): Promise<void> {
  const rollout = await simulateRollout(behaviour, seed, { faults: liveFaults(condition) });
  const { truth, record } = rollout;
  const { events, lost, struck } = applyFaults(rollout, condition, seed);
  const input = record.input(events);
  const tree = recoverTree(input);

  const edges = scoreEdges(truth, tree.edges, lost);
  tally.rollouts++;
  tally.calls += truth.calls.length;
  addCounts(tally.counts, edges.counts);
  for (const one of edges.judged) tally.judged.push({ ...one, behaviour: behaviour.name });
  const wrongRoles = scoreCalls(truth, tree, lost, tally);
  const { tokens, right } = scoreOwnership(truth, input, tree);
  tally.ownership.tokens += tokens;
  tally.ownership.right += right;
  for (const [fault, calls] of struck) tally.struck[fault] = (tally.struck[fault] ?? 0) + calls;

  const parents = {
    linearised: linearised(input.events),
    message_prefix: messagePrefix(input.events),
    token_prefix: tokenPrefix(input),
  };
  for (const [name, of] of Object.entries(parents) as [keyof typeof parents, Parents][]) {
    addCounts(tally.baselines[name], scoreEdges(truth, asEdges(of), lost).counts);
  }
  scoreAdvantages(rollout, tree, lost, parents, tally);
  tally.failures.push(
    ...failuresOf(edges, wrongRoles, { behaviour: behaviour.name, seed, condition: condition.name }),
  );
}

function scoreCalls(truth: Truth, tree: RolloutTree, lost: ReadonlySet<number>, tally: Tally): string[] {
  const found = new Map(tree.calls.map((call) => [call.call, call]));
  const wrong: string[] = [];
  for (const { call, role, agent } of truth.calls) {
    if (lost.has(call)) continue;
    const given = found.get(call);
    tally.roles.calls++;
    if (given?.role === role) tally.roles.right++;
    else wrong.push(`call ${call}: ${role}, recovered as ${given?.role ?? 'nothing'}`);
    if (role === 'side') continue;
    tally.agents.calls++;
    if (given?.agent === agent) tally.agents.right++;
  }
  return wrong;
}

/** PPO along the lineage with oracle values, each method's order beside the true one. */
function scoreAdvantages(
  { truth, values, reward }: SimulatedRollout,
  tree: RolloutTree,
  lost: ReadonlySet<number>,
  parents: Readonly<Record<'linearised' | 'message_prefix' | 'token_prefix', Parents>>,
  tally: Tally,
): void {
  const recovered = new Map(tree.calls.map((call) => [call.call, call]));
  // What cannot train for reasons of its own (lost replies, missing logprobs) is no error of the order.
  const trainable = (call: number): boolean => recovered.get(call)?.untrained === null;
  const sides = new Set(truth.calls.filter(({ role }) => role === 'side').map(({ call }) => call));
  const along = (order: Successors, trains: (call: number) => boolean): Advantages =>
    new Map(
      [...advantagesAlong(order, values, reward, LAMBDA)].filter(([call]) => trainable(call) && trains(call)),
    );
  // The order that the calls the record holds really had.
  const held = truth.edges.filter(({ from, to }) => !lost.has(from) && !lost.has(to));
  const edges = [...held, ...acrossLost(truth.edges, lost)];
  const right = along(trueLineage({ ...truth, edges }), (call) => !sides.has(call));
  const ours = along(
    treeLineage(tree.calls, tree.causal.lineage),
    (call) => recovered.get(call)?.role !== 'side',
  );
  tally.wrongAdvantage.treeward += wrongShare(right, ours);
  for (const name of ['linearised', 'message_prefix', 'token_prefix'] as const) {
    const given = along(childrenOf(parents[name]), () => true);
    tally.wrongAdvantage[name] += wrongShare(right, given);
  }
}

const asEdges = (parents: Parents): RolloutTree['edges'] =>
  [...parents].map(([to, from]) => ({ from, to, type: 'continue', confidence: 1, evidence: [] }));

function failuresOf(
  edges: EdgeScore,
  wrongRoles: readonly string[],
  where: Pick<Failure, 'behaviour' | 'seed' | 'condition'>,
): Failure[] {
  const failure = (kind: Failure['kind'], what: string): Failure => ({ ...where, kind, what });
  return [
    ...edges.missed.map(({ from, to, type }) => failure('missed', `${type} ${from} → ${to}`)),
    ...edges.wrong.map(({ from, to, type, evidence }) =>
      failure('wrong', `${type} ${from} → ${to} (${evidence.join(', ')})`),
    ),
    ...wrongRoles.map((what) => failure('role', what)),
  ].slice(0, KEPT_FAILURES);
}
