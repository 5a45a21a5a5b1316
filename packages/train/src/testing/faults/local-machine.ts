import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunFolder, writeJsonAtomic } from '@treeward/base';
import { Gateway } from '@treeward/gateway';
import { adapterByName, registerAdapter, type HarnessAdapter } from '@treeward/harness-adapters';
import { createTemplate, ScriptedEngine, type TemplateSpec } from '@treeward/policy';
import { RolloutPool, SandboxGrader, type RolloutResult, type RolloutSpec } from '@treeward/rollout';
import { BubblewrapProvider } from '@treeward/sandbox';

export const template: TemplateSpec = {
  kind: 'compact',
  tokenizer: fileURLToPath(new URL('../../../../../datasets/cold-start/tokenizer.json', import.meta.url)),
};

export interface LocalCase {
  /** Shell commands that the model asks for, before it says that it is done. */
  commands?: readonly string[];
  /** Text of reward.sh. @default gives 1 where `answer.txt` says right */
  checker?: string;
  /** Another way to start the harness. */
  adapter?: (inner: HarnessAdapter) => Partial<HarnessAdapter>;
  limits?: Partial<RolloutSpec['limits']>;
  /** The engine takes calls and never answers. */
  engineHangs?: boolean;
  /** While it runs. */
  during?: () => void;
}

const ANSWER = 'printf right > answer.txt';
const CHECKER = 'test "$(cat answer.txt 2>/dev/null)" = right && echo 1 || echo 0\n';

/** Gateway and engine in this process: rollouts whose one trouble is in the sandbox, the harness, the checker or the clock. */
export class LocalMachine {
  readonly #work = mkdtempSync(join(tmpdir(), 'tw-f-'));
  readonly #sandboxes = new BubblewrapProvider({ run: 'faults' });
  #count = 0;

  async play({ commands = [ANSWER], checker = CHECKER, ...more }: LocalCase): Promise<RolloutResult> {
    const id = `f${this.#count++}`;
    const run = new RunFolder(join(this.#work, id));
    const inner = adapterByName('agent-loop');
    const call = (command: string) => [
      { type: 'tool_call', id: 'c', name: inner.tools.exec.tool, arguments: { command } },
    ];
    const scripts = join(run.root, 'scripts');
    writeJsonAtomic(join(scripts, `${id}.json`), {
      replies: [...commands.map(call), [{ type: 'text', text: 'Done.' }]],
    });
    const adapter = { ...inner, ...more.adapter?.(inner), name: `loop-${id}` };
    const unregister = registerAdapter(adapter);
    const chat = createTemplate(template);
    const engine = new ScriptedEngine({ template: chat, scripts });
    const { engineHangs = false } = more;
    if (engineHangs) engine.sample = () => new Promise(() => undefined);
    const gateway = new Gateway({
      engine,
      closeGraceMs: 200,
      template: chat,
      canonicalise: () => (messages) => adapter.canonicalise(messages),
    });
    const deps = {
      gateway,
      sandboxes: this.#sandboxes,
      grader: new SandboxGrader(this.#sandboxes, { timeout: 1500 }),
      socketRoot: join(this.#work, 's'),
      folder: (name: string) => run.rollout(name),
      model: { lost: new AbortController().signal, awayMs: () => 0, answers: async () => !engineHangs },
    };
    const pool = new RolloutPool(deps, { retries: 0 });
    const spec: RolloutSpec = {
      rolloutId: id,
      task: this.#task(run, checker),
      harness: adapter.name,
      group: id,
      seed: id,
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 200 },
      limits: { wallMs: 60_000, maxTurns: 8, maxTokens: 4000, ...more.limits },
      labels: {},
    };
    const disturbing = more.during && setInterval(more.during, 50);
    try {
      const [result] = await pool.run([spec], () => undefined);
      return result!;
    } finally {
      clearInterval(disturbing);
      unregister();
      await gateway.dispose();
    }
  }

  #task(run: RunFolder, checker: string): string {
    const directory = join(run.root, 'task');
    mkdirSync(join(directory, 'reward'), { recursive: true });
    writeFileSync(
      join(directory, 'data_entry.json'),
      JSON.stringify({ task_id: 'fault', user_query: 'Do it.' }),
    );
    writeFileSync(join(directory, 'reward', 'reward.sh'), checker);
    return directory;
  }

  close(): Promise<void> {
    return this.#sandboxes.close();
  }
}
