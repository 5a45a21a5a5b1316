/** One thing a demonstrator does, in words of no harness; an adapter's `tools` turn it into a call. Paths are relative. */
export type Step =
  | { verb: 'read'; path: string }
  | { verb: 'write'; path: string; content: string }
  | { verb: 'edit'; path: string; old: string; new: string }
  | { verb: 'exec'; command: string };

export const DOMAINS = {
  productivity: 'Productivity & Collaboration',
  systems: 'Systems & Automation',
  analysis: 'Analysis & Reasoning',
  content: 'Content & Domain',
  planning: 'Planning & Knowledge',
  software: 'Software Development',
} as const;
export type Domain = keyof typeof DOMAINS;

export type PoolName =
  'name' | 'item' | 'verb' | 'city' | 'day' | 'color' | 'key' | 'stem' | 'term' | 'meaning' | 'number';

/** A value that stands for nothing but itself: another of its pool, used everywhere instead, gives as good a task. */
export interface Slot {
  value: string;
  pool: PoolName;
}

/**
 * One named sub-score, decided by checker/check.py from the files that are left. "Lines" are stripped, empty ones ignored.
 * `weight`s of a task sum to 1.
 */
export type Rule = { name: string; weight: number } & (
  | { kind: 'exists'; path: string }
  /** The share of `want` among the lines; 0 when there are more lines than `most`. */
  | { kind: 'recall'; path: string; want: string[]; most?: number }
  /** The lines are exactly `want`. */
  | { kind: 'equal'; path: string; want: string[] }
  /** As `equal`, but indentation counts. */
  | { kind: 'source'; path: string; want: string[] }
  /** `line` is there and `without` is gone. */
  | { kind: 'has'; path: string; line: string; without?: string }
  /** Every one of `words` occurs; with `single`, in a file of one line. */
  | { kind: 'words'; path: string; words: string[]; single?: number }
  /** The share of lines that stand in their place; 0 when the number of lines differs. */
  | { kind: 'places'; path: string; want: string[] }
  /** One line, and it is one of these. */
  | { kind: 'single'; path: string; of: string[] }
  /** The file is no longer `original` and is what the script saw, as its copy in `trace` shows. */
  | { kind: 'tested'; path: string; trace: string; original: string }
);

/** What a family makes. Exact strings everywhere; files have no final newline (a view of them then has no empty line). */
export interface Draft {
  files: Readonly<Record<string, string>>;
  query: string;
  rules: readonly Rule[];
  /** Earns 1. */
  oracle: readonly Step[];
  /** Each earns less; the first one is the family's dominant flaw. */
  flaws: readonly (readonly Step[])[];
}

export interface GeneratedTask extends Draft {
  /** `<family>-<seed>`: makes the task again (`taskById`). */
  id: string;
  family: string;
  domain: Domain;
  seed: number;
  slots: readonly Slot[];
}
