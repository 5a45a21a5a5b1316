import type { MessageNode } from '../message-tree.js';
import { AnchorIndex } from './anchor-index.js';
import type { LinkCall } from './link-call.js';
import { wordsOf } from './texts.js';

/** A tool use that may have started an agent. */
export interface TaskHit {
  at: number;
  use: number;
  /** Share of the task that stands in the text asked about. */
  coverage: number;
  anchors: number;
}

/** Tool uses with few words, the latest, that are compared one by one. */
const SHORT_TASKS = 32;
/** Letters of a task below which it could stand anywhere by chance. */
const TASK_LETTERS = 6;

const signature = (name: string, text: string): string => `${name}\0${text}`;

/**
 * What was said so far, by what it looks like: replies by their key, by their words, and by their tool calls. Filled as
 * far as it is asked for, so that a rollout without a second conversation pays nothing.
 */
export class ReplyIndex {
  readonly #calls: readonly LinkCall[];
  readonly #keyOf: (call: LinkCall) => string | null;
  #filled = 0;
  readonly #byKey = new Map<string, number>();
  readonly #byUse = new Map<string, number>();
  readonly #texts = new AnchorIndex();
  readonly #outside = new AnchorIndex();
  readonly #tasks = new AnchorIndex();
  readonly #taskOf: { at: number; use: number }[] = [];
  readonly #shortTasks: { at: number; use: number; words: string }[] = [];

  constructor(calls: readonly LinkCall[], keyOf: (call: LinkCall) => string | null) {
    this.#calls = calls;
    this.#keyOf = keyOf;
  }

  /** The latest call before `before` whose reply this assistant message is. */
  replyOf(message: MessageNode, before: number): number | null {
    this.#fill(before);
    const exact = this.#byKey.get(message.key);
    if (exact !== undefined && (message.text !== '' || message.uses.length > 0)) return exact;
    return null;
  }

  /** The latest call whose words or tool calls are part of this assistant message. */
  partOf(message: MessageNode, before: number): number | null {
    this.#fill(before);
    for (const { name, text } of [...message.uses].reverse()) {
      const at = this.#byUse.get(signature(name, text));
      if (at !== undefined) return at;
    }
    const hits = this.#texts.find(message.text).filter(({ coverage }) => coverage >= 0.8);
    return hits.length === 0 ? null : Math.max(...hits.map(({ ref }) => ref));
  }

  /** Calls whose reply text stands in `text`. */
  quotedIn(text: string, before: number): { at: number; coverage: number; anchors: number }[] {
    this.#fill(before);
    return this.#texts.find(text).map(({ ref, coverage, anchors }) => ({ at: ref, coverage, anchors }));
  }

  /** Side calls whose reply text stands in `text`. */
  outsideIn(text: string, before: number): { at: number; coverage: number; anchors: number }[] {
    this.#fill(before);
    return this.#outside.find(text).map(({ ref, coverage, anchors }) => ({ at: ref, coverage, anchors }));
  }

  /** Tool uses whose task stands in `text`. */
  tasksIn(text: string, before: number): TaskHit[] {
    this.#fill(before);
    const hits = this.#tasks.find(text).map(({ ref, coverage, anchors }) => {
      return { ...this.#taskOf[ref]!, coverage, anchors };
    });
    const all = ` ${wordsOf(text).join(' ')} `;
    for (const { at, use, words } of this.#shortTasks) {
      if (all.includes(` ${words} `) && words.length * 4 >= all.length)
        hits.push({ at, use, coverage: 1, anchors: 1 });
    }
    return hits;
  }

  #fill(before: number): void {
    for (; this.#filled < before; this.#filled++) {
      const call = this.#calls[this.#filled]!;
      if (call.thread === -1) {
        // Apart, so that what is outside the work changes nothing inside it.
        if (call.replyText !== '') this.#outside.add(call.replyText, call.at);
        continue;
      }
      const key = this.#keyOf(call);
      if (key !== null) this.#byKey.set(key, call.at);
      if (call.replyText !== '') this.#texts.add(call.replyText, call.at);
      call.uses.forEach(({ name, text, tasks }, use) => {
        this.#byUse.set(signature(name, text), call.at);
        for (const task of tasks) this.#addTask(call.at, use, task);
      });
    }
  }

  #addTask(at: number, use: number, task: string): void {
    const words = wordsOf(task);
    const joined = words.join(' ');
    if (words.length >= 4) this.#tasks.add(task, this.#taskOf.push({ at, use }) - 1);
    else if (joined.length >= TASK_LETTERS) {
      this.#shortTasks.push({ at, use, words: joined });
      if (this.#shortTasks.length > SHORT_TASKS) this.#shortTasks.shift();
    }
  }
}
