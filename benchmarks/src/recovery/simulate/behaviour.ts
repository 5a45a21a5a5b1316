import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, TreewardError } from '@treeward/base';
import * as z from 'zod';

const probability = z.number().min(0).max(1);
const range = z
  .tuple([z.number().min(0), z.number().min(0)])
  .refine(([from, to]) => from <= to, { error: 'a range is [least, most]' });
/** Median and spread (standard deviation of the logarithm) of a log-normal time in milliseconds. */
const duration = z.strictObject({ median: z.number().positive(), spread: z.number().min(0) });

/** A text around one other text. */
const around = (text: string) => z.string().regex(/\{\}/, { error: 'needs {} once' }).default(text);

const phrasesSchema = z.strictObject({
  mainSystem: z.string().default('You are a coding assistant.'),
  childSystem: z.string().default('You are an agent that works for another agent. Report what you found.'),
  /** The tool that starts agents, and its argument that holds the task. */
  agentTool: z.string().default('agent'),
  agentTask: z.string().default('prompt'),
  /** Its other arguments, the same in every call. */
  agentArguments: z.record(z.string(), z.string()).default({}),
  /** The child's first message. */
  task: around('{}'),
  /** The tool result of an agent in the foreground, of one in the background, and the latter's later report. */
  result: around('{}'),
  started: z.string().default('The agent was started and will report.'),
  report: around('An agent has finished.\n{}'),
  truncated: z.string().default('[truncated]'),
  badReply: z.string().default('Your reply could not be read. Call a tool or answer in text.'),
  anotherWay: around('Try another way: {}'),
  variant: around('Variant: {}'),
  summaryInstruction: z
    .string()
    .default('Summarise this conversation in a <summary> element. Do not call tools.'),
  summarySystem: z.string().default('You summarise conversations.'),
  summaryRequest: around('<conversation>\n{}\n</conversation>\nWrite a summary.'),
  summaryReply: around('<summary>\n{}\n</summary>'),
  afterSummary: around('This session goes on from an earlier one that ran out of context.\n{}'),
  /** Between the texts of replies that are merged into one message. */
  mergedBy: z.string().default('\n\n'),
  elided: z.string().default('[old result removed]'),
  trimmed: around('{} [… shortened]'),
  envelope: around('[message] {}'),
  queued: around('<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\n{}\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>'),
  title: z.string().default('Give this conversation a title of at most five words.'),
  topic: z.string().default('Is this a new topic? Answer in two words.'),
  sideRequest: around('{}'),
});

/** Puts a text into a phrase. */
export const phrase = (pattern: string, text: string): string => pattern.split('{}').join(text);

/** How a harness behaves, as data. Probabilities are per turn of an agent unless a field says otherwise. */
export const behaviourSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  dialect: z.enum(['anthropic-messages', 'openai-chat', 'openai-responses']),
  /** Chooses canonicaliser and reader of identity; a name without an adapter is an unknown harness. */
  harness: z.string(),
  /**
   * Headers and markers of every request. `full`: session, agent, parent and request class; `lineage`: without the
   * class; `session`: the session alone; `none`.
   */
  identity: z.enum(['full', 'lineage', 'session', 'none']),
  /** Does the template show system prompts to the model? */
  showsSystem: z.boolean(),
  turns: range,
  /** Main agents whose sessions run side by side in one rollout. */
  sessions: range.default([1, 1]),
  /** Everything the harness says in its own words. `{}` stands for what it says it about. */
  phrases: phrasesSchema.prefault({}),
  children: z.strictObject({
    /** Per turn: the reply starts agents. */
    spawn: probability,
    count: range,
    turns: range,
    /** Agents below the main one; 2 allows nested ones. */
    maxDepth: z.number().int().min(0).max(4),
    /** Per spawn: the parent goes on at once and is told later. */
    background: probability,
    /** Per spawn of background agents: the parent never hears of them. */
    unreported: probability.default(0.05),
    /** Agents at work side by side; others wait. */
    concurrency: z.number().int().min(1),
    taskWords: range.default([8, 20]),
    /** Per pair of siblings: equal task texts. Only where requests say which agent sends them. */
    sameTask: probability,
    /** Longest result in words; longer ones are cut by the harness. */
    resultWords: z.number().int().min(4),
  }),
  /** Per call. */
  failures: z.strictObject({
    serverError: probability,
    lostReply: probability,
    cutStream: probability,
    clientTimeout: probability,
    /** The reply is no turn; the same prompt is sampled again. */
    malformedRetry: probability,
    /** The reply is no turn; the harness says so and goes on behind it. */
    malformedAnswer: probability,
    /** The whole request is sent twice at once and one reply taken. */
    hedge: probability,
    maxAttempts: z.number().int().min(1),
    /** Per rollout: the last reply is tried again and nothing follows. */
    lastRetry: probability,
    /** Per retry after a lost reply: volatile text in the last message differs. */
    retryBodyChanges: probability,
    /** Per second draw: it repeats the first one word for word. */
    equalDraw: probability,
  }),
  rollback: probability,
  fork: probability,
  compaction: z.strictObject({
    chance: probability,
    /** `continue`: the history with an instruction behind it; `toolless`: a refused call, then a request of its own. */
    style: z.enum(['continue', 'toolless']),
    /** Share of tool-less summaries that a refused call comes before; others are asked for in good time. */
    refused: probability.default(1),
    /** Per turn of the user: the user has the history summed up first, and nothing of it is kept beside the summary. */
    manual: probability.default(0),
    keptTail: range,
    summary: z.enum(['verbatim', 'stripped', 'cut']),
  }),
  rewrite: z.strictObject({
    chance: probability,
    kinds: z.array(z.enum(['merge', 'elide', 'trim', 'envelope', 'drop-prompts'])).min(1),
    /** Only the system prompt is rendered anew; the turns stay. */
    systemOnly: probability,
    /** Only the tool manifest changes. */
    toolsOnly: probability,
  }),
  side: z.strictObject({ title: probability, topic: probability }),
  quirks: z.strictObject({
    moveCacheMarks: z.boolean(),
    flipContent: z.boolean(),
    rewriteCallIds: z.boolean(),
    /** A text that ends every request and is gone from the next one's history. */
    volatileTail: z.boolean(),
  }),
  text: z.strictObject({
    replyWords: range,
    resultWords: range,
    /** Share of replies and results taken from a few phrases. */
    commonReply: probability,
    commonResult: probability,
    /** Calls per reply. */
    callsPerReply: range,
    /** Share of replies with calls and no text. */
    silentCalls: probability,
    /** Per turn of the main agent: it answers in text and the user goes on. */
    userTurn: probability,
  }),
  timing: z.strictObject({
    sample: duration,
    tool: duration,
    backoff: duration,
    /** Between requests that leave together. */
    stagger: duration,
  }),
});

export type Behaviour = z.infer<typeof behaviourSchema>;

/**
 * All `*.json` of a directory, by name.
 * @throws TreewardError BEHAVIOUR_E_FILE naming file and field, BEHAVIOUR_E_NONE for an empty directory
 */
export function loadBehaviours(directory: string): Behaviour[] {
  let names: string[];
  try {
    names = readdirSync(directory).filter((name) => name.endsWith('.json'));
  } catch (cause) {
    throw new TreewardError('BEHAVIOUR_E_NONE', `cannot list behaviours in ${directory}`, { cause });
  }
  if (names.length === 0) {
    throw new TreewardError('BEHAVIOUR_E_NONE', `no *.json in ${directory}`, {
      hints: ['copy one from benchmarks/behaviours/tuning and change it'],
    });
  }
  return names.sort().map((name) => {
    const file = join(directory, name);
    const result = behaviourSchema.safeParse(readJson(file));
    if (result.success) return result.data;
    throw new TreewardError('BEHAVIOUR_E_FILE', `${file}: ${z.prettifyError(result.error)}`, {
      data: { file },
    });
  });
}
