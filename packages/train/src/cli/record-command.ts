import { existsSync, mkdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { Command } from 'commander';
import { TreewardError } from '@treeward/base';
import { adapterByName, adapters, type HarnessAdapter } from '@treeward/harness-adapters';
import type { EngineConfig } from '@treeward/policy';
import { describeTree, recoverDirectory, treeToJson } from '@treeward/tree-recovery';
import { recordHarness } from '../endpoint/record-harness.js';
import { numberFlag } from './number-flag.js';

interface RecordFlags {
  harness?: string;
  upstream: string;
  upstreamUrl?: string;
  model?: string;
  keyEnv?: string;
  out?: string;
  maxTokens: string;
  json?: boolean;
}

const BINARIES: Readonly<Record<string, string>> = { claude: 'claude-code' };

export function recordCommand(): Command {
  return new Command('record')
    .description(
      'run a harness on your own model provider, record its calls, print the tree of what happened',
    )
    .argument('<command...>', 'the harness and its arguments, after --')
    .option('--harness <name>', 'which adapter; by default from the name of the command')
    .option('--upstream <kind>', 'anthropic, or openai for any server with chat completions', 'anthropic')
    .option('--upstream-url <url>', "base URL; by default the provider's own")
    .option('--model <name>', 'model at the upstream')
    .option(
      '--key-env <name>',
      'variable with the upstream key (default: ANTHROPIC_API_KEY or OPENAI_API_KEY)',
    )
    .option('--max-tokens <n>', 'most tokens of a reply', '8192')
    .option('--out <dir>', 'folder of the record; by default a new one below runs/')
    .option('--json', 'print the tree as JSON (the harness prints to stderr then)')
    .addHelpText(
      'after',
      `
The command runs here, as you, with its endpoint set to a recording gateway on a loopback port. A harness that is
configured by files gets a private HOME inside the record's folder. Text-only upstreams give no token ids: such a record
can be looked at and scored, and never trains.

Examples:
  treeward record --model claude-haiku-4-5 -- claude -p "What is in this folder?"
  treeward record --upstream openai --upstream-url http://127.0.0.1:8000/v1 --model my-model -- pi -p "Fix the test"`,
    )
    .action(async (command: string[], flags: RecordFlags) => {
      const adapter = harnessOf(command, flags.harness);
      const upstream = upstreamOf(flags);
      const stamp = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15);
      const out = resolve(flags.out ?? join('runs', `record-${stamp}`));
      if (existsSync(join(out, 'telemetry.ndjson'))) {
        throw new TreewardError('RUN_E_EXISTS', `${out} holds a record already`, {
          hints: ['choose another --out'],
        });
      }
      mkdirSync(out, { recursive: true });
      const maxTokens = numberFlag('--max-tokens', flags.maxTokens, { min: 1, integer: true });
      const stdout = flags.json ? 'stderr' : 'inherit';
      const code = await recordHarness({ adapter, command, out, upstream, maxTokens, stdout });
      const tree = recoverDirectory(out);
      if (flags.json)
        process.stdout.write(`${JSON.stringify({ folder: out, code, tree: treeToJson(tree) })}\n`);
      else process.stdout.write(`\n${describeTree(tree)}\nrecord ${out}\n`);
      process.exitCode = code ?? 1;
    });
}

/** @throws TreewardError CLI_E_HARNESS */
function harnessOf(command: readonly string[], name: string | undefined): HarnessAdapter {
  if (name !== undefined) return adapterByName(name);
  const binary = basename(command[0] ?? '');
  const known = adapters.find((adapter) => adapter.name === (BINARIES[binary] ?? binary));
  if (known) return known;
  throw new TreewardError('CLI_E_HARNESS', `${binary}: no harness of that name`, {
    hints: [`--harness with one of ${adapters.map((adapter) => adapter.name).join(', ')}`],
  });
}

/** @throws TreewardError CLI_E_UPSTREAM */
function upstreamOf(flags: RecordFlags): EngineConfig {
  const refuse = (message: string, hint: string): TreewardError =>
    new TreewardError('CLI_E_UPSTREAM', message, { hints: [hint] });
  if (flags.model === undefined) throw refuse('--model is missing', 'name the model at the upstream');
  const kind = flags.upstream;
  if (kind !== 'anthropic' && kind !== 'openai')
    throw refuse(`--upstream ${kind}: not known`, 'anthropic or openai');
  const apiKeyEnv = flags.keyEnv ?? (kind === 'anthropic' ? 'ANTHROPIC_API_KEY' : 'OPENAI_API_KEY');
  const { upstreamUrl = 'https://the-default' } = flags;
  if (!/^https?:\/\//.test(upstreamUrl) || !URL.canParse(upstreamUrl)) {
    throw refuse(`--upstream-url ${upstreamUrl}: not a URL`, 'for example http://127.0.0.1:8000/v1');
  }
  const local = ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(upstreamUrl).hostname);
  if (!process.env[apiKeyEnv] && !local) {
    throw refuse(
      `the variable ${apiKeyEnv} is not set`,
      'put the upstream key there, or name another by --key-env',
    );
  }
  const common = {
    model: flags.model,
    ...(process.env[apiKeyEnv] && { apiKeyEnv }),
    ...(flags.upstreamUrl !== undefined && { baseUrl: flags.upstreamUrl }),
  };
  return kind === 'anthropic'
    ? { kind: 'anthropic', ...common }
    : { kind: 'openai-compatible', mode: 'chat', baseUrl: 'https://api.openai.com/v1', ...common };
}
