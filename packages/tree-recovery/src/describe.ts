import { EVIDENCE } from './evidence.js';
import { summarise, type TreeSummary } from './summary.js';
import { pathLength, sampledLength } from './tree-paths.js';
import type { RolloutTree, TreeEdge } from './types.js';

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** A table for people: every call, where it came from and why, and for each call that does not train the reason. */
export function describeTree(tree: RolloutTree): string {
  const summary = summarise(tree);
  const into = new Map<number, TreeEdge[]>();
  for (const edge of tree.edges) into.set(edge.to, [...(into.get(edge.to) ?? []), edge]);
  const firstStart = tree.calls[0]?.startTime ?? 0;
  const rows = [
    ['call', 'at', 'role', 'agent', 'epoch', 'prompt', 'sampled', 'version', 'delivery', 'from', 'trains'],
  ];
  for (const call of tree.calls) {
    rows.push([
      String(call.call),
      `${((call.startTime - firstStart) / 1000).toFixed(2)}s`,
      call.role,
      String(call.agent),
      String(call.epoch),
      call.promptNode === -1 ? '-' : String(pathLength(tree, call.promptNode)),
      call.actionNode === -1 ? '-' : String(sampledLength(tree, call)),
      call.policyVersion === null ? '-' : String(call.policyVersion),
      call.malformed ? `${call.delivery}, malformed` : call.delivery,
      describeEdges(into.get(call.call) ?? []),
      call.untrained === null ? 'yes' : `no: ${call.untrained}`,
    ]);
  }
  const lines = [...headLines(tree, summary), '', ...table(rows)];
  if (tree.edges.length > 0) {
    lines.push('', 'edges');
    for (const edge of tree.edges) {
      lines.push(
        `  ${edge.from} -> ${edge.to}  ${edge.type} ${edge.confidence.toFixed(2)}  ${edge.evidence.map(sayEvidence).join('; ')}`,
      );
    }
  }
  if (tree.issues.length > 0) {
    lines.push('', 'issues');
    for (const { severity, code, message } of tree.issues) lines.push(`  ${severity}  ${code}  ${message}`);
  }
  return lines.join('\n');
}

/** What `treeward recover --json` prints: all but the tokens, which tree.bin has. */
export function treeToJson(tree: RolloutTree): Record<string, unknown> {
  return {
    schema: 1,
    rolloutId: tree.rolloutId,
    labels: tree.labels,
    summary: summarise(tree),
    calls: tree.calls.map((call) => ({
      ...call,
      temperature: Number.isNaN(call.temperature) ? null : call.temperature,
      promptTokens: pathLength(tree, call.promptNode),
      sampledTokens: sampledLength(tree, call),
    })),
    edges: tree.edges,
    runs: tree.runs.map(({ calls }) => calls),
    epochs: tree.epochs,
    causal: { chain: successors(tree, 'chain'), lineage: successors(tree, 'lineage') },
    nodes: [...tree.nodes.kind_N].map((kind, n) => ({
      kind: kind === 1 ? 'action' : 'observation',
      parent: tree.nodes.parent_N[n],
      tokens: tree.nodes.end_N[n]! - tree.nodes.start_N[n]!,
      depth: tree.nodes.depth_N[n],
    })),
    issues: tree.issues,
    verdict: tree.verdict,
    reward: tree.reward,
    status: tree.status,
  };
}

/** Per call the calls it leads to; all of one call weigh the same. */
function successors({ calls, causal }: RolloutTree, name: keyof RolloutTree['causal']): number[][] {
  const { offset_C1, successor_L } = causal[name];
  return calls.map((_, at) =>
    [...successor_L.subarray(offset_C1[at], offset_C1[at + 1])].map((position) => calls[position]!.call),
  );
}

function headLines(tree: RolloutTree, summary: TreeSummary): string[] {
  const labels = Object.entries(tree.labels).map(([name, value]) => `${name}=${value}`);
  const { verdict } = tree;
  const edges = Object.entries(summary.edges).map(([type, count]) => `${count} ${type}`);
  return [
    `rollout ${tree.rolloutId || '(no id)'}  ${labels.join(' ')}`.trimEnd(),
    `${tree.status}, reward ${tree.reward ?? 'none'}, ${verdict.kind}${verdict.reason ? `: ${verdict.reason}` : ''}`,
    `${plural(summary.calls, 'call')}, ${plural(summary.leaves, 'leaf').replace('leafs', 'leaves')}, ` +
      `${plural(summary.nodes, 'node')}, ${plural(summary.tokens, 'token')}; ` +
      `${summary.trainedTokens} of ${summary.sampledTokens} sampled tokens train; edges: ${edges.join(', ') || 'none'}`,
  ];
}

function sayEvidence(code: string): string {
  return (EVIDENCE as Readonly<Record<string, string>>)[code] ?? code;
}

function describeEdges(edges: readonly TreeEdge[]): string {
  return edges.map(({ type, from }) => `${type} of ${from}`).join(', ') || '-';
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}
