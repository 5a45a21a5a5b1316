import { TreewardError } from '@treeward/base';
import type { ToolNames } from './types.js';

/**
 * A call of one of the four verbs in a harness's own words. `values` in the order of `ToolNames.arguments`.
 * @throws TreewardError HARNESS_E_ARGUMENTS when their number differs
 */
export function toolCall(
  names: ToolNames,
  values: readonly string[],
): { name: string; arguments: Record<string, unknown> } {
  const { tool, shell } = names;
  const expected = shell?.length ?? names.arguments.length;
  if (values.length !== expected) {
    throw new TreewardError(
      'HARNESS_E_ARGUMENTS',
      `${tool} takes ${expected} values${shell ? ' for its command' : ` (${names.arguments.join(', ')})`}, got ${values.length}`,
      { data: { tool, expected, got: values.length } },
    );
  }
  const given = shell ? [shell(...values)] : values;
  const args: Record<string, unknown> = {};
  names.arguments.forEach((path, index) => {
    setPath(args, path.split('.'), given[index]);
  });
  return { name: names.tool, arguments: args };
}

type Node = Record<string, unknown>;

/** `edits.0.oldText`: a number after a dot is a place in a list. */
function setPath(root: Node, path: readonly string[], value: unknown): void {
  let node = root;
  path.forEach((key, index) => {
    const next = path[index + 1];
    if (next === undefined) node[key] = value;
    else node = (node[key] ??= /^\d+$/.test(next) ? [] : {}) as Node;
  });
}
