import { canonicalJson, type ToolSpec } from '@treeward/messages';

/**
 * An argument that is a list of objects is spelled one field at a time, by path: `edits.0.oldText`. Names stay verbatim, the
 * values stay plain text that can be copied, and the rule is the same for every harness. Any other value that is not a string
 * is canonical JSON.
 */
const PATH = /^([^.]+)\.(\d+)\.([^.]+)$/;

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const spell = (value: unknown): string => (typeof value === 'string' ? value : canonicalJson(value));

export function flattenArguments(args: Readonly<Fields>): [path: string, value: string][] {
  return Object.entries(args).flatMap(([name, value]): [string, string][] => {
    const items =
      Array.isArray(value) && value.length > 0 && value.every(isObject) ? (value as Fields[]) : null;
    if (!items) return [[name, spell(value)]];
    return items.flatMap((item, index) =>
      Object.entries(item).map(([field, inner]): [string, string] => [
        `${name}.${index}.${field}`,
        spell(inner),
      ]),
    );
  });
}

/** The inverse, every leaf a string. Null when indices do not count up from 0 or a name is both a value and a list. */
export function nestArguments(entries: readonly (readonly [string, string])[]): Fields | null {
  const out = new Map<string, string | Map<string, string>[]>();
  for (const [path, value] of entries) {
    const [, name, index, field] = PATH.exec(path) ?? [];
    if (name === undefined || field === undefined) {
      if (Array.isArray(out.get(path))) return null;
      out.set(path, value);
      continue;
    }
    const list = out.get(name) ?? [];
    if (!Array.isArray(list) || Number(index) > list.length) return null;
    (list[Number(index)] ??= new Map()).set(field, value);
    out.set(name, list);
  }
  // fromEntries defines own fields, so that an argument named __proto__ stays data.
  return Object.fromEntries(
    [...out].map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map((item) => Object.fromEntries(item)) : value,
    ]),
  );
}

interface Schema {
  type?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: unknown;
}

/** Names in the order in which the schema lists its properties: that order is stable, the order of `required` is not. */
function required(schema: Schema): string[] {
  const names = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const listed = Object.keys(schema.properties ?? {});
  return [
    ...listed.filter((name) => names.includes(name)),
    ...names.filter((name) => !listed.includes(name)),
  ];
}

/** Paths of the arguments that a call cannot go without, as the manifest shows them. */
export function requiredPaths(tool: ToolSpec): string[] {
  const schema = tool.parameters as Schema;
  return required(schema).flatMap((name) => {
    const inner = schema.properties?.[name];
    const fields = inner?.type === 'array' && inner.items?.type === 'object' ? required(inner.items) : [];
    return fields.length > 0 ? fields.map((field) => `${name}.0.${field}`) : [name];
  });
}
