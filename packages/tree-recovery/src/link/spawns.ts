import type { Evidence } from '../evidence.js';
import type { Attachment, LinkCall } from './link-call.js';
import type { TaskHit } from './reply-index.js';
import { RECENT_CALLS, RECENT_THREADS, type Scene, type Spawning } from './scene.js';
import { wordsOf, type ToolUse } from './texts.js';
import { agentName } from './threads.js';
import { toolCallId } from './witnesses.js';

/** Share of a tool call's texts in the first message of an agent. */
const TASK = 0.5;
const TASK_WHOLE = 0.9;

/** Finds the tool call that started an agent. */
export class SpawnFinder {
  readonly #calls: Scene['calls'];
  readonly #tree: Scene['tree'];
  readonly #replies: Scene['replies'];
  readonly #threads: Scene['threads'];
  readonly #growth: Scene['growth'];
  readonly #witnesses: Scene['known']['witnesses'];
  readonly #taken = new Set<string>();
  /** What is found out in this pass, and what is known already. */
  readonly spawning: Spawning = { tools: new Set(), childTools: new Set(), missed: false };
  readonly #spawning: Spawning;

  constructor({ calls, tree, replies, threads, growth, known }: Scene) {
    this.#calls = calls;
    this.#tree = tree;
    this.#replies = replies;
    this.#threads = threads;
    this.#growth = growth;
    this.#witnesses = known.witnesses;
    this.#spawning = known.spawning ?? this.spawning;
  }

  settle(call: LinkCall): void {
    const { attachment } = call;
    if (attachment.kind !== 'spawned') return;
    const { of, use, evidence } = attachment;
    this.#taken.add(`${of}:${use}`);
    if (evidence.includes('task-text')) this.#learnSpawning(call, this.#calls[of]!.uses[use]);
  }

  /** The tool call whose task stands in what was said to the call. */
  taskIn(call: LinkCall): TaskHit | null {
    // Two agents may be given the same words: what is not new counts as well.
    const text = this.#saidTo(call);
    let best: (TaskHit & { rank: number }) | null = null;
    for (const found of this.#replies.tasksIn(text, call.at)) {
      if (found.coverage < TASK) continue;
      const hit = { ...found, at: this.#growth.takenTwin(found.at, call) };
      const source = this.#calls[hit.at]!;
      if (source.thread === -1) continue;
      const rank =
        (this.#isNamed(call, hit) ? 64 : 0) +
        (source.finish <= call.start ? 32 : 0) +
        (source.delivered ? 16 : 0) +
        (hit.coverage >= TASK_WHOLE ? 8 : 0) +
        (this.#taken.has(`${hit.at}:${hit.use}`) ? 0 : 4) +
        (this.#growth.isOpen(hit.at) ? 2 : 0) +
        (this.#namesParent(call, source) ? 1 : 0);
      if (!best || rank > best.rank || (rank === best.rank && this.#isLater(hit, best)))
        best = { ...hit, rank };
    }
    return best;
  }

  spawned(call: LinkCall, task: TaskHit): Attachment {
    const source = this.#calls[task.at]!;
    const evidence: Evidence[] = [task.coverage >= TASK_WHOLE ? 'task-text' : 'task-part'];
    if (this.#growth.isOpen(task.at)) evidence.push('in-tool');
    const name = agentName(call);
    if (name === '' || this.#threads.namedBy(call) !== null) evidence.push('header-against');
    else if (name !== null) evidence.push('header-agent');
    if (!source.delivered) evidence.push('undelivered');
    evidence.push(...this.#seen(call, task));
    return { kind: 'spawned', of: task.at, use: task.use, evidence };
  }

  /**
   * Without a task in its words: an agent calls, as headers or its tools say, and a tool call is open in which it may
   * run, of the tool that is known to start agents if one is.
   */
  spawnedInTool(call: LinkCall): Attachment | null {
    const name = agentName(call);
    const named = name !== null && name !== '' && this.#threads.namedBy(call) === null;
    const { tools, childTools } = this.#spawning;
    const likely = name === null && call.tools !== null && childTools.has(call.tools);
    if (!named && !likely) {
      if (name === null && call.turn === 0 && call.toolless === false) this.spawning.missed = true;
      return null;
    }
    const text = this.#saidTo(call);
    let best: { at: number; use: number; words: number; open: boolean; rank: number } | null = null;
    for (const at of this.#finishedBefore(call, named)) {
      const open = this.#growth.isOpen(at);
      for (const [i, use] of this.#calls[at]!.uses.entries()) {
        if (this.#taken.has(`${at}:${i}`) || (tools.size > 0 && !tools.has(use.name))) continue;
        const words = Math.max(0, ...use.text.split('\n').map((said) => wordsHeld(text, said)));
        const isNamed = this.#isNamed(call, { at, use: i });
        if (!open && !isNamed && (words === 0 || tools.size === 0)) continue;
        const running = this.#witnesses.isRunning(use, call.start);
        const rank =
          (isNamed ? 1e6 : 0) + (running === true ? 1e5 : running === false ? -1e5 : 0) + 2 * words;
        if (!best || rank + Number(open) > best.rank)
          best = { at, use: i, words, open, rank: rank + Number(open) };
      }
    }
    if (tools.size === 0) this.spawning.missed = true;
    if (!best) return null;
    const evidence: Evidence[] = [];
    if (named) evidence.push('header-agent');
    if (best.open) evidence.push('in-tool');
    if (tools.size > 0) evidence.push('agent-tool');
    if (best.words > 0) evidence.push('task-part');
    evidence.push(...this.#seen(call, best));
    return { kind: 'spawned', of: best.at, use: best.use, evidence };
  }

  /** One reply may give the same task to several agents: then equal first requests are not one sampled again. */
  otherChild(call: LinkCall, earlier: LinkCall): Attachment | null {
    const { attachment } = this.#calls[this.#growth.firstAttempt(earlier.at)]!;
    if (attachment.kind !== 'spawned' || !earlier.delivered || !earlier.sampled) return null;
    const same = call.identity.agent !== undefined && call.identity.agent === earlier.identity.agent;
    const { of, use } = attachment;
    const { uses } = this.#calls[of]!;
    const free = uses.findIndex(({ text }, i) => text === uses[use]!.text && !this.#taken.has(`${of}:${i}`));
    return free === -1 || same ? null : this.spawned(call, { at: of, use: free, coverage: 1, anchors: 1 });
  }

  /** Of two equally likely tool uses: in one reply the first, else that of the later reply. */
  #isLater(a: TaskHit, b: TaskHit): boolean {
    return a.at === b.at ? a.coverage > b.coverage : a.at > b.at;
  }

  #namesParent(call: LinkCall, source: LinkCall): boolean {
    const { agent, parentAgent } = call.identity;
    if (agent === undefined && parentAgent === undefined) return false;
    return this.#threads.parentNamedBy(call) === source.thread;
  }

  /** Does the transcript name that tool call as what started the agent? */
  #isNamed(call: LinkCall, { at, use }: { at: number; use: number }): boolean {
    const start = this.#witnesses.startOf(call, this.#tree);
    return start !== null && toolCallId(this.#calls[at]!.uses[use]?.id ?? '') === start;
  }

  /** What transcript and commands say of a cause that the contents allow. */
  #seen(call: LinkCall, cause: { at: number; use: number }): Evidence[] {
    const evidence: Evidence[] = [];
    const use = this.#calls[cause.at]!.uses[cause.use];
    if (!use) return evidence;
    if (this.#isNamed(call, cause)) evidence.push('transcript');
    else if (this.#witnesses.startOf(call, this.#tree) !== null) evidence.push('transcript-against');
    if (this.#witnesses.isRunning(use, call.start)) evidence.push('exec');
    return evidence;
  }

  /** Replies, the latest first, that were there when that call began: of the parent that headers name, or of anybody. */
  #finishedBefore(call: LinkCall, named: boolean): number[] {
    const parent = this.#threads.parentNamedBy(call);
    const threads = named ? (parent === null ? [] : [this.#threads.all[parent]!]) : this.#threads.all;
    const there = threads
      .slice(-RECENT_THREADS)
      .flatMap(({ calls }) => calls.slice(-RECENT_CALLS))
      .filter((at) => {
        const { finish, delivered, sampled } = this.#calls[at]!;
        return delivered && sampled && finish <= call.start;
      });
    return [...new Set(there.map((at) => this.#growth.takenTwin(at, call)))].sort((a, b) => b - a);
  }

  /** All that users said to a call, old and new. */
  #saidTo(call: LinkCall): string {
    return this.#tree
      .between(0, call.node)
      .flatMap(({ role, text }) => (role === 'user' ? [text] : []))
      .join('\n');
  }

  #learnSpawning(call: LinkCall, use: ToolUse | undefined): void {
    if (use) this.spawning.tools.add(use.name);
    if (call.tools !== null) this.spawning.childTools.add(call.tools);
  }
}

/** Words that a text shares with the beginning of a task, in their order. */
function wordsHeld(text: string, task: string): number {
  const all = ` ${wordsOf(text).join(' ')} `;
  const words = wordsOf(task);
  let count = 0;
  while (count < words.length && all.includes(` ${words.slice(0, count + 1).join(' ')} `)) count++;
  return count;
}
