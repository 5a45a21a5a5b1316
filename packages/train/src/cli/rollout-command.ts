import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { RunFolder, TreewardError } from '@treeward/base';
import { loadTasks, materialise } from '@treeward/eval';
import { adapterByName, adapters, requireInstalled } from '@treeward/harness-adapters';
import type { TemplateSpec } from '@treeward/policy';
import { loadTask, runRollout, SandboxGrader, type RolloutSpec } from '@treeward/rollout';
import { describeTree, recoverDirectory, treeToJson } from '@treeward/tree-recovery';
import { checkpointFolder } from '../checkpoint-folder.js';
import { templateOf } from '../engine-spec.js';
import { exportSampler } from '../export-sampler.js';
import { Stack, type EngineSpec } from '../processes/stack.js';
import { stackDeps } from '../stack-pool.js';
import { numberFlag } from './number-flag.js';
import { providerFlag, providerOption } from './provider-flag.js';

interface RolloutFlags {
  task: string;
  harness: string;
  engine: string;
  out: string;
  checkpoint: string;
  seed: string;
  temperature: string;
  maxTokens: string;
  provider: string;
  trace?: boolean;
  json?: boolean;
}

export function rolloutCommand(): Command {
  return new Command('rollout')
    .description('run one task in one harness, record it, judge it')
    .requiredOption('--task <dir>', 'task directory (ClawGym format)')
    .requiredOption('--harness <name>', adapters.map(({ name }) => name).join(', '))
    .requiredOption('--out <dir>', 'where rollouts/<id>/ goes')
    .option(
      '--engine <spec>',
      'llama (the checkpoint), scripted:<dir with <rolloutId>.json>, anthropic:<model> or openai:<model>@<base URL>',
      'llama',
    )
    .option('--checkpoint <dir>', 'model.safetensors, config.json and tokenizer.json', 'datasets/cold-start')
    .option('--seed <text>', 'seed of the sampling stream; also names the rollout', '0')
    .option('--temperature <t>', 'sampling temperature', '1')
    .option('--max-tokens <n>', 'most tokens of a reply', '90')
    .addOption(providerOption())
    .option('--trace', 'record every command that runs inside (strace)')
    .option('--json', 'print result and tree as JSON')
    .addHelpText(
      'after',
      `
Examples:
  treeward rollout --task datasets/tasks/sample/config-1 --harness agent-loop --out /tmp/try
  treeward rollout --task datasets/tasks/sample/bug-1 --harness claude-code --engine scripted:/tmp/scripts --out /tmp/try --json`,
    )
    .action(async (flags: RolloutFlags) => {
      const { id } = loadTask(flags.task);
      await requireInstalled(adapterByName(flags.harness));
      const out = new RunFolder(resolve(flags.out));
      const rolloutId = `${id}-${flags.harness}-${flags.seed}`.replace(/[^\w.-]/g, '_');
      if (existsSync(out.rollout(rolloutId).result)) {
        throw new TreewardError('RUN_E_EXISTS', `${out.rollout(rolloutId).root} holds this rollout already`, {
          hints: ['choose another --seed or --out'],
        });
      }
      const checkpoint = await checkpointFolder(flags.checkpoint, '--checkpoint');
      const template = templateOf('compact', checkpoint);
      const engine = engineFlag(flags.engine, template);
      mkdirSync(out.root, { recursive: true });
      // As published it may name the workspace of another machine, or have a checker that is no /bin/sh script.
      const [published] = loadTasks('clawgym', resolve(flags.task)).tasks;
      const task = materialise(published!, join(out.root, 'tasks', id.replace(/[^\w.-]/g, '_')));
      const sandboxes = await providerFlag(flags.provider);
      const stack = new Stack({ runDirectory: out.root, template, engine });
      try {
        await stack.start();
        if (engine.kind === 'llama')
          await stack.publish(
            { id: checkpoint, version: 0 },
            exportSampler(checkpoint, join(out.root, 'weights')),
          );
        const spec: RolloutSpec = {
          rolloutId,
          task: task.directory,
          harness: flags.harness,
          group: rolloutId,
          seed: flags.seed,
          sampling: {
            temperature: numberFlag('--temperature', flags.temperature, { min: 0 }),
            topP: 1,
            topK: 0,
            maxTokens: numberFlag('--max-tokens', flags.maxTokens, { min: 1, integer: true }),
          },
          limits: { wallMs: 120_000, maxTurns: 12, maxTokens: 2000 },
          labels: {},
        };
        const result = await runRollout(spec, {
          ...stackDeps(stack, sandboxes),
          grader: new SandboxGrader(sandboxes),
          folder: (id) => out.rollout(id),
          ...(flags.trace && { trace: true }),
        });
        const recorded = existsSync(out.rollout(rolloutId).telemetry);
        const tree = recorded ? recoverDirectory(out.rollout(rolloutId).root) : null;
        if (flags.json)
          process.stdout.write(
            JSON.stringify({
              ...result,
              folder: out.rollout(rolloutId).root,
              tree: tree && treeToJson(tree),
            }) + '\n',
          );
        else {
          if (tree) process.stdout.write(describeTree(tree) + '\n');
          process.stdout.write(`reward ${result.reward ?? 'none'} ${JSON.stringify(result.scores)}\n`);
          if (result.fault)
            process.stdout.write(
              `fault ${result.fault.kind} ${result.fault.code}: ${result.fault.message}\n`,
            );
          process.stdout.write(`record ${out.rollout(rolloutId).root}\n`);
        }
        if (result.reward === null) process.exitCode = 1;
      } finally {
        await stack.close();
        await sandboxes.sweep();
      }
    });
}

/** @throws TreewardError CLI_E_ENGINE */
export function engineFlag(text: string, template: TemplateSpec): EngineSpec {
  if (text === 'llama') return { kind: 'llama', contextLength: 768, sequences: 2, threads: 1 };
  const [, kind, rest] = /^(scripted|anthropic|openai):(.+)$/.exec(text) ?? [];
  if (kind === 'scripted') return { kind, scripts: resolve(rest!), template };
  if (kind === 'anthropic') return { kind, model: rest!, apiKeyEnv: 'ANTHROPIC_API_KEY' };
  const [, model, baseUrl] = /^(.+)@(https?:\/\/.+)$/.exec(rest ?? '') ?? [];
  if (kind === 'openai' && model !== undefined) {
    const apiKeyEnv = process.env['OPENAI_API_KEY'] === undefined ? {} : { apiKeyEnv: 'OPENAI_API_KEY' };
    return { kind: 'openai-compatible', mode: 'chat', model, baseUrl: baseUrl!, ...apiKeyEnv };
  }
  throw new TreewardError('CLI_E_ENGINE', `--engine ${text}: not known`, {
    hints: ['llama', 'scripted:<dir>', 'anthropic:<model>', 'openai:<model>@<base URL>'],
  });
}
