import type { RecordEvent, ToolExec, TranscriptAgent } from '@treeward/telemetry';
import { replyKey, type MessageTree } from '../message-tree.js';
import { replyWords, type LinkCall } from './link-call.js';
import { wordsOf, type ToolUse } from './texts.js';

/** Letters of a result below which it could stand in a transcript by chance. */
const RESULT_LETTERS = 6;
/** Letters of a command below which it says nothing about who ran it. */
const COMMAND_LETTERS = 4;
/** Milliseconds by which the clocks of a command's witness and of the gateway may differ. */
const CLOCKS = 250;

/**
 * What was seen beside the model boundary: the harness's transcript, and commands that ran. They decide between causes that
 * the contents allow, and never make one up: harnesses rewrite their files, and clocks differ.
 */
export class Witnesses {
  readonly #agents: readonly TranscriptAgent[];
  readonly #commands: readonly ToolExec[];
  /** Key of a reply → the one agent in whose transcript it stands; null: several. */
  readonly #byReply = new Map<string, TranscriptAgent | null>();
  /** Words of the first message → the one agent that was told them; null: several. */
  readonly #byTask = new Map<string, TranscriptAgent | null>();
  readonly #heard = new Map<string, string>();

  constructor(events: readonly RecordEvent[]) {
    this.#agents = events.flatMap((event) => (event.type === 'transcript' ? event.agents : []));
    this.#commands = events.flatMap((event) => {
      return event.type === 'tool.exec' && event.command.length >= COMMAND_LETTERS ? [event] : [];
    });
    for (const agent of this.#agents) {
      for (const { kind, parts } of agent.entries) {
        if (kind === 'assistant' && parts) note(this.#byReply, replyKey(parts), agent);
      }
      const first = agent.entries.find(({ kind }) => kind === 'user')?.text;
      if (first) note(this.#byTask, wordsOf(first).join(' '), agent);
    }
  }

  /** Id of the tool call that started the agent of this call, as the transcript tells it; null: it does not. */
  startOf(call: LinkCall, tree: MessageTree): string | null {
    const agent = this.#agentOf(call, tree);
    return agent?.spawnedBy ? toolCallId(agent.spawnedBy) : null;
  }

  /** Does any other agent's transcript hold what this call answered, in a result or a message? */
  heard(result: LinkCall): boolean {
    const wanted = replyWords(result);
    if (this.#agents.length < 2 || wanted.length < RESULT_LETTERS || !result.sampled) return false;
    const own = this.#byReply.get(replyKey(result.entry.sampled!.reply.parts));
    return this.#agents.some((agent) => agent !== own && this.#heardBy(agent).includes(` ${wanted} `));
  }

  /** Was a command of this tool call running then? Null: no command of it is known. */
  isRunning({ text }: ToolUse, time: number): boolean | null {
    const said = text.split('\n');
    const known = this.#commands.filter(({ command }) =>
      said.some((one) => one.length >= COMMAND_LETTERS && command.includes(one)),
    );
    if (known.length === 0) return null;
    return known.some(({ start, end }) => start - CLOCKS <= time && time <= (end ?? Infinity) + CLOCKS);
  }

  #agentOf(call: LinkCall, tree: MessageTree): TranscriptAgent | null {
    if (this.#agents.length === 0) return null;
    const { sampled } = call.entry;
    const byReply = sampled && this.#byReply.get(replyKey(sampled.reply.parts));
    if (byReply) return byReply;
    const first = tree.between(0, call.node).find(({ role }) => role === 'user');
    return (first && this.#byTask.get(wordsOf(first.text).join(' '))) ?? null;
  }

  #heardBy(agent: TranscriptAgent): string {
    let words = this.#heard.get(agent.agent);
    if (words === undefined) {
      const texts = agent.entries.flatMap(({ kind, text }) =>
        text !== undefined && (kind === 'tool' || kind === 'user') ? [text] : [],
      );
      words = ` ${texts.map((text) => wordsOf(text).join(' ')).join(' \n ')} `;
      this.#heard.set(agent.agent, words);
    }
    return words;
  }
}

/** Harnesses write their call ids with and without punctuation. */
export function toolCallId(id: string): string {
  return id.replace(/[^a-zA-Z0-9]/g, '');
}

function note(map: Map<string, TranscriptAgent | null>, key: string, agent: TranscriptAgent): void {
  const known = map.get(key);
  map.set(key, known === undefined || known === agent ? agent : null);
}
