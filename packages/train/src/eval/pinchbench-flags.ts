import { Option, type Command } from 'commander';
import { TreewardError } from '@treeward/base';

export interface PinchbenchFlags {
  engine: string;
  label?: string;
  model?: string;
  thinking?: string;
}

/** The flags of PinchBench's own tool that the other formats have no use for. */
export const addPinchbenchFlags = (command: Command): Command =>
  command
    .option(
      '--model <provider/model>',
      'as PinchBench names it: anthropic/…, openai/… or openrouter/…; instead of --engine',
    )
    .addOption(
      new Option('--thinking <level>', 'only off: adapters have no such setting').choices([
        ...['off', 'minimal', 'low', 'medium', 'high'],
      ]),
    )
    .option('--no-fail-fast', "go on although a task of the manifest's run_first scored 0");

/** Base URLs of OpenAI-compatible services by their name in a model's. */
const SERVICES: Readonly<Record<string, string>> = {
  openai: 'https://api.openai.com/v1',
  openrouter: 'https://openrouter.ai/api/v1',
};

/** What `--engine` would be: its own value, or what `--model` says. @throws TreewardError CLI_E_MODEL, CLI_E_THINKING */
export function engineOf({ engine, model, thinking }: PinchbenchFlags): string {
  if (thinking !== undefined && thinking !== 'off') {
    throw new TreewardError(
      'CLI_E_THINKING',
      `--thinking ${thinking}: no harness is run with thinking here`,
      {
        data: { field: '--thinking' },
        hints: ['adapters have no such setting: leave it out, or say off'],
      },
    );
  }
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
