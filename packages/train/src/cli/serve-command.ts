import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { adapterByName, adapters } from '@treeward/harness-adapters';
import { checkpointFolder } from '../checkpoint-folder.js';
import { openFront } from '../endpoint/front.js';
import { ServedEndpoints } from '../endpoint/served-endpoints.js';
import { templateOf } from '../engine-spec.js';
import { exportSampler } from '../export-sampler.js';
import { Stack } from '../processes/stack.js';
import { numberFlag } from './number-flag.js';

interface ServeFlags {
  port: string;
  key?: string;
  harness: string;
  temperature: string;
  maxTokens: string;
  sampling: 'config' | 'request';
  sequences: string;
  contextLength: string;
  seed: string;
  record?: string;
  template: 'compact' | 'huggingface';
  json?: boolean;
}

export function serveCommand(): Command {
  return new Command('serve')
    .description(
      'serve a trained policy on a loopback port, through the gateway and template it was trained with',
    )
    .argument('<checkpoint>', 'folder with model.safetensors, config.json and tokenizer.json')
    .option('--port <n>', 'loopback port; 0 takes a free one', '8177')
    .option('--key <key>', 'API key that clients must present; a random one is made and printed')
    .option('--harness <name>', 'whose wrapping is taken off at paths without a harness prefix', 'agent-loop')
    .option('--temperature <t>', 'sampling temperature', '1')
    .option('--max-tokens <n>', 'most tokens of a reply', '256')
    .addOption(
      new Option('--sampling <from>', 'config: the flags above count; request: what the client asks for')
        .choices(['config', 'request'])
        .default('config'),
    )
    .option('--sequences <n>', 'calls decoded together', '4')
    .option('--context-length <n>', 'tokens of prompt and reply', '768')
    .addOption(
      new Option('--template <kind>', 'chat template').choices(['compact', 'huggingface']).default('compact'),
    )
    .option('--seed <text>', 'seed of the sampling streams', '0')
    .option('--record <dir>', 'keep the records of all calls there; without it none stays')
    .option('--json', 'print {"url","key","harnesses"} as one JSON line when ready')
    .addHelpText(
      'after',
      `
A path prefix names the harness, so that the policy sees what it saw in training:
  ANTHROPIC_BASE_URL=http://127.0.0.1:8177/claude-code ANTHROPIC_API_KEY=<key> claude -p "…"
  curl http://127.0.0.1:8177/v1/chat/completions -H "authorization: Bearer <key>" -d '{"messages":[…]}'

Examples:
  treeward serve datasets/cold-start
  treeward serve runs/mixed/checkpoints/step_000013 --port 0 --temperature 0.5 --record /tmp/served`,
    )
    .action(async (directory: string, flags: ServeFlags) => {
      const checkpoint = await checkpointFolder(directory, '<checkpoint>');
      adapterByName(flags.harness);
      const temperature = numberFlag('--temperature', flags.temperature, { min: 0 });
      const maxTokens = numberFlag('--max-tokens', flags.maxTokens, { min: 1, integer: true });
      const port = numberFlag('--port', flags.port, { min: 0, max: 65535, integer: true });
      const engine = {
        kind: 'llama',
        contextLength: numberFlag('--context-length', flags.contextLength, { min: 64, integer: true }),
        sequences: numberFlag('--sequences', flags.sequences, { min: 1, integer: true }),
        threads: 1,
      } as const;
      const work = mkdtempSync(join(tmpdir(), 'treeward-serve-'));
      const records = flags.record === undefined ? join(work, 'records') : resolve(flags.record);
      mkdirSync(records, { recursive: true });
      const stack = new Stack({
        runDirectory: work,
        template: templateOf(flags.template, checkpoint),
        engine,
      });
      const key = flags.key ?? `tw-${randomBytes(16).toString('hex')}`;
      const stopped = new Promise<void>((done) => {
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done());
      });
      try {
        await stack.start();
        await stack.publish({ id: checkpoint, version: 0 }, exportSampler(checkpoint, join(work, 'weights')));
        const endpoints = new ServedEndpoints({
          gateway: stack.gateway,
          socketRoot: stack.socketRoot,
          records,
          harness: flags.harness,
          sampling: { temperature, topP: 1, topK: 0, maxTokens },
          samplingFrom: flags.sampling,
          seed: flags.seed,
          keepRecords: flags.record !== undefined,
        });
        const front = await openFront({
          port,
          key,
          target: (path) => endpoints.target(path),
          metrics: () => stack.gateway.metricsText(),
        });
        announce(front.url, key, flags.json ?? false);
        await stopped;
        await front.close();
        await endpoints.close();
      } finally {
        await stack.close();
        rmSync(work, { recursive: true, force: true });
      }
    });
}

function announce(url: string, key: string, json: boolean): void {
  const harnesses = Object.fromEntries(adapters.map(({ name }) => [name, `${url}/${name}`]));
  if (json) {
    process.stdout.write(`${JSON.stringify({ url, key, harnesses })}\n`);
    return;
  }
  process.stdout.write(`serving at ${url}, key ${key}\n`);
  process.stdout.write('  /v1/messages · /v1/chat/completions · /v1/responses · /v1/models · /metrics\n');
  for (const [name, base] of Object.entries(harnesses))
    process.stdout.write(`  ${name.padEnd(18)} ${base}\n`);
  process.stdout.write('Ctrl-C ends it.\n');
}
