import { conditional, type Outcome } from './process.js';
import type { ToyCall, ToyRun } from './toy.js';

/**
 * What a critic may look at before a token.
 * - `history`: calls that had finished when this call started, and its own earlier tokens;
 * - `started`: all that started earlier, finished or not;
 * - `context`: only what the policy sees.
 */
export type CriticView = 'history' | 'started' | 'context';

function seen(run: ToyRun, call: ToyCall, token: number, view: CriticView): string {
  const own = call.tokens.slice(0, token).map(({ action }) => action);
  const context = `${call.context}:${own.join('')}`;
  if (view === 'context') return context;
  const others = run.calls.filter((other) =>
    view === 'history' ? other.finish <= call.start : other !== call && other.start < call.start,
  );
  const known = others.map(({ name, tokens }) => `${name}=${tokens.map(({ action }) => action).join('')}`);
  // Which call asks is part of a history: a retry shares its prompt with the attempt that failed.
  return `${call.name} ${context} after ${known.join(' ')}`;
}

/** Values of every token of a run, calls in the order of the run. */
export type Critic = (run: ToyRun) => number[][];

/** The exact critic of a view: the expected reward given what it sees. */
export function exactCritic(outcomes: readonly Outcome<ToyRun>[], view: CriticView): Critic {
  const keys = (run: ToyRun): string[][] =>
    run.calls.map((call) => call.tokens.map((_, token) => seen(run, call, token, view)));
  const values = conditional(
    outcomes,
    (run) => keys(run).flat(),
    ({ reward }) => reward,
  );
  return (run) => keys(run).map((row) => row.map((key) => values.get(key)!));
}
