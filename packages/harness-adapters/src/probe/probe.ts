import { readFileSync } from 'node:fs';
import type { SandboxProvider } from '@treeward/sandbox';
import { runScripted } from '../scripted/run.js';
import { call, inOrder, say } from '../scripted/script.js';
import { toolCall } from '../tool-call.js';
import type { HarnessAdapter } from '../types.js';
import { probeFacts, type ProbeFacts } from './facts.js';

export interface ProbeReport {
  harness: string;
  facts: ProbeFacts;
  /** What is not as it was when the adapter was written; empty: all as expected. Each names the fact and both values. */
  warnings: string[];
}

const PROMPT = 'Say what is in notes.txt.';

/** Facts of the pinned versions, taken by this probe: its integration test writes them anew with TREEWARD_UPDATE_PROBES=1. */
export const expectedFile = new URL('../../src/probe/expected.json', import.meta.url);

/**
 * Runs the installed CLI once, in a sandbox, on a scripted model: an overloaded call, one tool call, a final text. Compares
 * what it did with `expected` (by default what is known of the pinned version).
 * @throws TreewardError HARNESS_E_MISSING when it is not installed, and what the sandbox throws
 */
export async function probeHarness(
  adapter: HarnessAdapter,
  options: { provider: SandboxProvider; expected?: ProbeFacts },
): Promise<ProbeReport> {
  const { name, arguments: args } = toolCall(adapter.tools.read, ['notes.txt']);
  const outcome = await runScripted(adapter, options.provider, {
    tasks: [{ prompt: PROMPT, maxTurns: 5 }],
    files: { 'notes.txt': 'alpha\n' },
    script: inOrder([{ status: 529 }, [call(name, args)], say('alpha')]),
  });
  const facts = probeFacts(adapter, PROMPT, outcome);
  const known = JSON.parse(readFileSync(expectedFile, 'utf8')) as Record<string, ProbeFacts>;
  const expected = options.expected ?? known[adapter.name];
  return { harness: adapter.name, facts, warnings: warningsOf(adapter, facts, expected) };
}

function warningsOf(adapter: HarnessAdapter, facts: ProbeFacts, expected: ProbeFacts | undefined): string[] {
  const { name, pin } = adapter;
  const version =
    facts.version === pin ? [] : [`${name}: version ${facts.version} is installed, ${pin} was tested`];
  if (!expected) return [...version, `${name}: nothing is known of how it should behave`];
  const differences = (Object.keys(expected) as (keyof ProbeFacts)[]).flatMap((fact) => {
    const [was, is] = [JSON.stringify(expected[fact]), JSON.stringify(facts[fact])];
    return fact === 'version' || was === is ? [] : [`${name}: ${fact} is ${is}, expected ${was}`];
  });
  return [...version, ...differences];
}
