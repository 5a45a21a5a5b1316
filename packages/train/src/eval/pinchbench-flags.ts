import { Option, type Command } from 'commander';
import { TreewardError } from '@treeward/base';
import { adapterByName, adapters, THINKING_LEVELS, type ThinkingLevel } from '@treeward/harness-adapters';

export interface PinchbenchFlags {
  engine: string;
  label?: string;
  model?: string;
  thinking?: ThinkingLevel;
}

/** The flags of PinchBench's own tool that the other formats have no use for. */
export const addPinchbenchFlags = (command: Command): Command =>
  command
    .option(
      '--model <provider/model>',
      'as PinchBench names it: anthropic/…, openai/… or openrouter/…; instead of --engine',
    )
    .addOption(
      new Option(
        '--thinking <level>',
        'how much thinking the harness asks of the model, and a hosted model is asked',
      ).choices(THINKING_LEVELS),
    )
    .option('--no-fail-fast', "go on although a task of the manifest's run_first scored 0");

/** Base URLs of OpenAI-compatible services by their name in a model's. */
const SERVICES: Readonly<Record<string, string>> = {
  openai: 'https://api.openai.com/v1',
  openrouter: 'https://openrouter.ai/api/v1',
};

/** The level that the harness is to ask for; null for none. @throws TreewardError CLI_E_THINKING where it has no such setting */
export function thinkingFlag(level: ThinkingLevel | undefined, harness: string): ThinkingLevel | null {
  if (level === undefined || level === 'off') return null;
  if (adapterByName(harness).thinks) return level;
  const able = adapters.filter(({ thinks }) => thinks).map(({ name }) => name);
  throw new TreewardError(
    'CLI_E_THINKING',
    `--thinking ${level}: the harness ${harness} has no setting for how much a model thinks`,
    { data: { field: '--thinking', harness }, hints: [`these have: ${able.join(', ')}`, 'or say off'] },
  );
}

/** What `--engine` would be: its own value, or what `--model` says. @throws TreewardError CLI_E_MODEL */
export function engineOf({ engine, model }: PinchbenchFlags): string {
  if (model === undefined) return engine;
  const [, provider, name] = /^([\w-]+)\/(.+)$/.exec(model) ?? [];
  // With an engine of its own the name is what results call it.
  if (engine !== 'llama') return engine;
  if (provider === 'anthropic') return `anthropic:${name}`;
  const service = SERVICES[provider ?? ''];
  if (service !== undefined) return `openai:${name}@${service}`;
  throw new TreewardError('CLI_E_MODEL', `--model ${model}: not known where it is served`, {
    data: { field: '--model' },
    hints: [
      'anthropic/<model>, openai/<model>, openrouter/<model>',
      'or --engine openai:<model>@<base URL> beside it',
    ],
  });
}
