import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { RunFolder } from '@treeward/base';
import {
  describeEvaluation,
  evaluate,
  materialise,
  writePinchbenchResults,
  type EvaluationIdentity,
  type FormatName,
} from '@treeward/eval';
import { adapterByName, adapters, requireInstalled } from '@treeward/harness-adapters';
import { checkpointFolder } from '../checkpoint-folder.js';
import { numberFlag } from '../cli/number-flag.js';
import { providerOption } from '../cli/provider-flag.js';
import { templateOf } from '../engine-spec.js';
import { exportSampler } from '../export-sampler.js';
import { Stack } from '../processes/stack.js';
import { duration, Progress } from '../progress.js';
import { stackDeps } from '../stack-pool.js';
import { stopSignals } from '../stop-signals.js';
import { compareCommand } from './compare-command.js';
import { COMMAND_OF } from './formats.js';
import { judgeOf, priceFlag, type JudgeFlags } from './judge-flags.js';
import { matrixCommand } from './matrix-command.js';
import { addPinchbenchFlags, engineOf, thinkingFlag, type PinchbenchFlags } from './pinchbench-flags.js';
import { policyFlag } from './policy-flag.js';
import { loadSet, sandboxesOf, type SetFlags } from './task-set.js';

interface EvalFlags extends JudgeFlags, SetFlags, PinchbenchFlags {
  harness: string;
  runs: string;
  checkpoint: string;
  template: 'compact' | 'huggingface';
  contextLength: string;
  seed: string;
  temperature: string;
  maxTokens: string;
  maxTurns: string;
  maxRolloutTokens: string;
  timeoutMultiplier: string;
  timeout: string;
  concurrency: string;
  threshold: string;
  missingSide: 'renormalise' | 'zero';
  slots: 'full' | 'released';
  price?: string;
  dryRun?: boolean;
  json?: boolean;
}

export function evalCommand(): Command {
  const command = new Command('eval').description('run and grade a benchmark, or compare evaluations');
  for (const [format, name] of Object.entries(COMMAND_OF))
    command.addCommand(benchCommand(name, format as FormatName));
  return command.addCommand(compareCommand()).addCommand(matrixCommand());
}

function benchCommand(name: string, format: FormatName): Command {
  const command = new Command(name)
    .description(`run and grade tasks in the ${name} form`)
    .option('--tasks <path>', 'folder (or .jsonl, .csv) of the tasks')
    .option('--hub <name>', 'public data set by owner/name, instead of --tasks')
    .option('--hub-url <url>', 'another server with the same API')
    .requiredOption('--harness <name>', adapters.map((adapter) => adapter.name).join(', '))
    .option(
      '--engine <spec>',
      'llama (the checkpoint), scripted:<dir>, anthropic:<model>, openai:<model>@<base URL>, reference or noop',
      'llama',
    )
    .requiredOption('--out <dir>', 'where the evaluation goes; the same again goes on with it')
    .option('--runs <n>', 'runs per task', '1')
    .option(
      '--suite <name>',
      'all, automated-only, frozen, core, pinchbench-clawgym30, a category, or ids with commas',
      'all',
    )
    .option('--core', 'the same as --suite core')
    .option('--label <text>', 'what reports call this policy; by default the engine')
    .option('--checkpoint <dir>', 'model.safetensors, config.json and tokenizer.json', 'datasets/cold-start')
    .addOption(
      new Option('--template <kind>', 'chat template').choices(['compact', 'huggingface']).default('compact'),
    )
    .option('--context-length <n>', 'tokens of prompt and reply of a llama or scripted engine', '768')
    .option('--seed <text>', 'seed of the sampling streams', '0')
    .option('--temperature <t>', 'sampling temperature', '1')
    .option('--max-tokens <n>', 'most tokens of a reply', '4096')
    .option('--max-turns <n>', 'model calls after which a harness should stop', '50')
    .option('--max-rollout-tokens <n>', 'most sampled tokens of a run', '200000')
    .option('--timeout-multiplier <x>', 'scales every time limit', '1')
    .option('--timeout <seconds>', 'time limit of tasks that have none', '600')
    .option('--concurrency <n>', 'runs at once', '2')
    .addOption(providerOption())
    .option('--threshold <x>', 'score from which a run passes', '1')
    .option(
      '--judge <spec>',
      'openai:<model>[@<base URL>], anthropic:<model>[@<base URL>] or scripted:<file.json>',
    )
    .option('--judge-attempts <n>', 'replies asked for until one keeps the contract', '3')
    .option('--judge-repeats <n>', 'independent judgements; their agreement is reported', '1')
    .addOption(
      new Option('--judge-aggregate <how>', 'over criteria')
        .choices(['mean', 'rubric_weights'])
        .default('mean'),
    )
    .option('--judge-price <in/out>', 'dollars per million tokens')
    .option('--judge-file-limit <n>', 'characters of one file shown to the judge', '20000')
    .option('--no-judge-cache', 'ask again for what was judged before')
    .option('--no-parallel-judge', 'one judgement after the other')
    .addOption(
      new Option('--slots <set>', 'what the judge sees').choices(['full', 'released']).default('full'),
    )
    .addOption(
      new Option('--missing-side <rule>', 'a hybrid task with one number')
        .choices(['renormalise', 'zero'])
        .default('renormalise'),
    )
    .option('--price <in/out>', 'of the policy, dollars per million tokens')
    .option('--strict', 'PinchBench: cut sections exactly where the original does')
    .option('--tolerance <x>', 'OfficeQA: relative tolerance of numbers', '0')
    .option('--dry-run', 'say what would run')
    .option('--json', 'print the summary as JSON')
    .addHelpText(
      'after',
      `
Examples:
  treeward eval ${name} --tasks DIR --harness claude-code --engine llama --runs 3 --out /tmp/e
  treeward eval ${name} --tasks DIR --harness openclaw --engine openai:qwen3@http://localhost:8000/v1 --judge anthropic:claude-haiku-4-5 --out /tmp/e --json`,
    )
    .action((flags: EvalFlags) => runBench(name, format, flags));
  return format === 'pinchbench' ? addPinchbenchFlags(command) : command;
}

async function runBench(name: string, format: FormatName, flags: EvalFlags): Promise<void> {
  const engine = engineOf(flags);
  const { loaded, complete, note, images, sanity } = await loadSet(format, flags);
  const out = new RunFolder(resolve(flags.out));
  const count = (flag: string, text: string, min = 1): number =>
    numberFlag(flag, text, { min, integer: true });
  const runs = count('--runs', flags.runs);
  const judge = judgeOf(flags, out.root);
  const thinking = thinkingFlag(flags.thinking, flags.harness);
  const identity: EvaluationIdentity = {
    format,
    tasks: flags.tasks === undefined ? `hub:${flags.hub}` : resolve(flags.tasks),
    suite: flags.core ? 'core' : flags.suite,
    harness: adapterByName(flags.harness).name,
    engine: engine === 'llama' ? `llama:${resolve(flags.checkpoint)}` : engine,
    label: flags.label ?? flags.model ?? (engine === 'llama' ? flags.checkpoint : engine),
    seed: flags.seed,
    sampling: {
      temperature: numberFlag('--temperature', flags.temperature, { min: 0 }),
      topP: 1,
      topK: 0,
      maxTokens: count('--max-tokens', flags.maxTokens),
      ...(thinking && { effort: thinking }),
    },
    ...(thinking && { thinking }),
    judge: judge?.name ?? null,
    missingSide: flags.missingSide,
    slots: flags.slots,
  };
  for (const { message } of loaded.problems) process.stderr.write(`warning: ${message}\n`);
  if (thinking && !/^(openai|anthropic):/.test(engine))
    process.stderr.write(
      `warning: --thinking ${thinking} is what the harness asks for; the engine ${identity.engine} takes no such wish\n`,
    );
  const unjudged = judge ? 0 : loaded.tasks.filter(({ grading }) => grading.type !== 'automated').length;
  if (unjudged > 0)
    process.stderr.write(
      `warning: ${unjudged} tasks need --judge; without it their judged part has no number\n`,
    );
  if (flags.dryRun) {
    const plan = {
      ...identity,
      name,
      runs,
      tasks: loaded.tasks.map(({ id }) => id),
      problems: loaded.problems,
      complete,
      note,
    };
    process.stdout.write(`${JSON.stringify(plan, null, 2)}\n`);
    return;
  }
  await requireInstalled(adapterByName(flags.harness));
  const checkpoint = await checkpointFolder(flags.checkpoint, '--checkpoint');
  const template = templateOf(flags.template, checkpoint);
  const policy = policyFlag(
    engine,
    template,
    out,
    flags.harness,
    count('--context-length', flags.contextLength, 64),
  );
  const progress = new Progress({ quiet: flags.json ?? false });
  const sandboxes = await sandboxesOf(flags.provider, images);
  const stack = new Stack({ runDirectory: out.root, template, engine: policy.engine });
  const stop = stopSignals((text) => progress.line(text));
  // An evaluation has no steps: the first Ctrl-C ends it, what is finished stays.
  const signal = AbortSignal.any([stop.afterStep, stop.now]);
  try {
    const summary = await evaluate({
      identity,
      loaded,
      complete,
      note,
      out,
      runs,
      timeoutMultiplier: numberFlag('--timeout-multiplier', flags.timeoutMultiplier, { min: 0.01 }),
      timeoutSeconds: numberFlag('--timeout', flags.timeout, { min: 1 }),
      limits: {
        maxTurns: count('--max-turns', flags.maxTurns),
        maxTokens: count('--max-rollout-tokens', flags.maxRolloutTokens),
      },
      concurrency: count('--concurrency', flags.concurrency),
      perHarness: { openclaw: 2, 'openclaw-gateway': 2 },
      threshold: numberFlag('--threshold', flags.threshold, { min: 0, max: 1 }),
      ...(judge && { judge }),
      sanity,
      price: priceFlag('--price', flags.price),
      deps: stackDeps(stack, sandboxes),
      prepare: async () => {
        await stack.start();
        if (policy.engine.kind === 'llama')
          await stack.publish(
            { id: checkpoint, version: 0 },
            exportSampler(checkpoint, join(out.root, 'weights')),
          );
      },
      ...(policy.onPlanned && { onPlanned: policy.onPlanned }),
      onProgress: ({ done, total, meanScore, costUsd, seconds, secondsLeft }) =>
        progress.update(
          `${done}/${total} runs · mean ${meanScore?.toFixed(3) ?? '–'} · ${duration(seconds)} · $${costUsd.toFixed(4)} · ${duration(secondsLeft ?? NaN)} left`,
        ),
      signal,
    });
    const written = new Map(
      loaded.tasks.map((task) => [
        task.id,
        materialise(task, join(out.root, 'tasks', task.id.replace(/[^\w.-]/g, '_').slice(0, 80))),
      ]),
    );
    const files = format === 'pinchbench' ? writePinchbenchResults(out, summary, written) : null;
    if (flags.json)
      process.stdout.write(`${JSON.stringify({ ...summary, ...(files && { pinchbench: files }) })}\n`);
    else {
      progress.line('');
      process.stdout.write(`${describeEvaluation(summary)}\nsummary ${out.summary}\n`);
      if (files) process.stdout.write(`pinchbench results ${files.results}\n`);
    }
    if (signal.aborted || summary.all.coverage === 0) process.exitCode = 1;
  } finally {
    stop.dispose();
    await stack.close();
    await sandboxes.sweep();
  }
}
