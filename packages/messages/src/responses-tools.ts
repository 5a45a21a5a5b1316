import { objectOf, parametersOf, stringOf } from './lenient.js';
import type { CallForm, ToolSpec } from './types.js';

/** A custom tool as the policy sees it: a function of one text. */
const CUSTOM_PARAMETERS = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] };

/** The one name under which the policy knows a function of a namespace; without namespace the name itself. */
export function joinedName(namespace: unknown, name: unknown): string {
  const space = stringOf(namespace);
  return space === '' || space.endsWith('_') ? space + stringOf(name) : `${space}__${stringOf(name)}`;
}

/** The `tools` of a Responses request, flat, and how the special ones among them are called. */
export function responsesTools(
  tools: readonly Record<string, unknown>[],
  unknown: Set<string>,
): { specs: ToolSpec[]; calls: Map<string, CallForm> } {
  const specs: ToolSpec[] = [];
  const calls = new Map<string, CallForm>();
  const add = (tool: Record<string, unknown>, namespace: string): void => {
    const { type, name } = tool;
    const description = stringOf(tool['description']);
    if (typeof name === 'string' && type === 'function') {
      const joined = joinedName(namespace, name);
      specs.push({ name: joined, description, parameters: parametersOf(tool['parameters']) });
      if (namespace !== '') calls.set(joined, { type: 'namespaced', namespace, name });
    } else if (typeof name === 'string' && type === 'custom' && namespace === '') {
      specs.push({
        name,
        description: withFormat(description, tool['format']),
        parameters: CUSTOM_PARAMETERS,
      });
      calls.set(name, { type: 'custom' });
    } else if (
      typeof name === 'string' &&
      type === 'namespace' &&
      namespace === '' &&
      Array.isArray(tool['tools'])
    ) {
      for (const inner of tool['tools']) add(objectOf(inner) ?? {}, name);
    } else {
      unknown.add(`tool ${typeof type === 'string' ? type : 'without type'}`);
    }
  };
  for (const tool of tools) add(tool, '');
  return { specs, calls };
}

/** A grammar is told, not enforced. */
function withFormat(description: string, format: unknown): string {
  const definition = stringOf(objectOf(format)?.['definition']);
  return definition === '' ? description : `${description}\n\nThe input follows this grammar:\n${definition}`;
}
