import { sampledLength } from '../tree-paths.js';
import type { EdgeType, RolloutTree } from '../types.js';

const STYLE: Readonly<Record<EdgeType, string>> = {
  continue: 'color=black',
  retry: 'color=orange',
  rollback: 'color=red',
  parallel: 'color=gray,style=dashed,dir=none',
  compaction: 'color=purple',
  rewrite: 'color=purple,style=dotted',
  spawn: 'color=blue',
  return: 'color=blue,style=dashed',
  ambiguous: 'color=red,style=dotted',
};

const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`;

/** Graphviz text: a box per call, grouped by agent, an arrow per edge with its confidence; grey does not train. */
export function treeToDot(tree: RolloutTree): string {
  const lines = [`digraph ${quoted(tree.rolloutId)} {`, '  rankdir=LR;', '  node [shape=box,fontsize=10];'];
  const agents = new Set(tree.calls.map(({ agent }) => agent));
  for (const agent of agents) {
    lines.push(
      `  subgraph cluster_${agent} {`,
      `    label=${quoted(agent === 0 ? 'main' : `agent ${agent}`)};`,
    );
    for (const call of tree.calls) {
      if (call.agent !== agent) continue;
      const label = `${call.call} ${call.role}\n${sampledLength(tree, call)} tokens${call.untrained ? `\n${call.untrained}` : ''}`;
      lines.push(
        `    c${call.call} [label=${quoted(label)}${call.untrained ? ',color=gray,fontcolor=gray' : ''}];`,
      );
    }
    lines.push('  }');
  }
  for (const { from, to, type, confidence } of tree.edges) {
    lines.push(
      `  c${from} -> c${to} [label=${quoted(`${type} ${confidence.toFixed(2)}`)},fontsize=8,${STYLE[type]}];`,
    );
  }
  return [...lines, '}'].join('\n');
}
