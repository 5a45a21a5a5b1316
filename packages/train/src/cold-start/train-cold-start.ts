import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomStream, readJson, writeJsonAtomic, type Random, type RunFolder } from '@treeward/base';
import { DEFAULT_MIXTURE, renameSlots } from '@treeward/datasets';
import { embeddedConfig, learnerEntry, RemoteLearner, type Learner } from '@treeward/learner';
import { BpeTokenizer, CompactTemplate } from '@treeward/policy';
import { JsonlSink } from '../metrics.js';
import { duration, type Progress } from '../progress.js';
import { Service } from '../processes/service.js';
import { averageCheckpoints } from './average.js';
import { demonstrationRow, malformedRow, packRows, type Row } from './demonstration-rows.js';
import { loadDemonstrations, type Demonstration } from './demonstrations.js';
import { sftRate } from './sft-schedule.js';

export interface ColdStartOptions {
  /** Folder with demonstrations.jsonl and rollouts/ (cold-start record). */
  demonstrations: RunFolder;
  tokenizer: string;
  /** Weights to start from; absent: random. */
  init?: string;
  minutes: number;
  seed: number;
  learners: number;
  /** Sequences per learner and step. */
  batch: number;
  averageEvery: number;
  malformedShare: number;
  /** Peak rates: AdamW on embeddings and norms, Muon on hidden matrices. */
  lr: number;
  muonLr: number;
  signal?: AbortSignal;
}

interface State {
  step: number;
  seconds: number;
  tokens: number;
}

/** Harness, plan and demonstration, each drawn: a harness speaks as often as the others, however many records it has. */
function drawDemonstration(demonstrations: readonly Demonstration[], random: Random): Demonstration {
  const harness = random.pick([...new Set(demonstrations.map((demonstration) => demonstration.harness))]);
  const draw = random.next();
  const { clean, dominant } = DEFAULT_MIXTURE;
  const plan = draw < clean ? 'clean' : draw < clean + dominant ? 'dominant' : 'other';
  return random.pick(
    demonstrations.filter((candidate) => candidate.harness === harness && candidate.plan === plan),
  );
}

/** Endless batches, the slots of each demonstration renamed anew each time, some with a garbled last call. */
function* batches(
  demonstrations: readonly Demonstration[],
  template: CompactTemplate,
  separator: number,
  random: Random,
  options: ColdStartOptions,
): Generator<Row[], never> {
  for (;;) {
    const rows: Row[] = [];
    while (rows.length < options.batch) {
      const { conversation, task } = drawDemonstration(demonstrations, random);
      const rename = renameSlots(task, random);
      rows.push(demonstrationRow(conversation, template, rename));
      if (random.next() < options.malformedShare) {
        const row = malformedRow(conversation, template, rename, separator, random);
        if (row) rows.push(row);
      }
    }
    yield rows;
  }
}

/**
 * Supervised cold start from recorded demonstrations. One learner per core on its own data, averaged every few steps. Resumable: the
 * last average, the step and the time used lie in `<out>/sft/`.
 */
export async function trainColdStart(
  out: RunFolder,
  options: ColdStartOptions,
  progress: Progress,
): Promise<void> {
  const demonstrations = loadDemonstrations(options.demonstrations);
  progress.line(`cold start from ${demonstrations.length} recorded demonstrations`);
  const tokenizer = BpeTokenizer.load(options.tokenizer);
  const template = new CompactTemplate(tokenizer);
  const average = join(out.root, 'sft', 'average');
  const stateFile = join(out.root, 'sft', 'state.json');
  const sink = new JsonlSink(out.metrics);
  const state: State = existsSync(stateFile)
    ? readJson<State>(stateFile)
    : { step: 0, seconds: 0, tokens: 0 };
  mkdirSync(join(out.root, 'sft'), { recursive: true });

  const services: Service[] = [];
  const learners: Learner[] = [];
  for (let k = 0; k < options.learners; k++) {
    const socketPath = join(out.root, 'sft', `l${k}.sock`);
    services.push(
      new Service({
        name: `learner ${k}`,
        entry: learnerEntry,
        socketPath,
        config: () => ({
          ...(options.init
            ? { checkpoint: options.init }
            : { init: { config: embeddedConfig(tokenizer.vocabSize), seed: options.seed } }),
          optimizer: { kind: 'muon', lr: options.lr, muonLr: options.muonLr, betas: [0.9, 0.98], eps: 1e-9 },
          threads: 1,
          microBatchTokens: 2048,
        }),
        logFile: join(out.root, `learner-${k}.log`),
        runDirectory: out.root,
        maxRestarts: 0,
      }),
    );
    learners.push(new RemoteLearner(socketPath, { scratch: join(out.root, 'sft', 'batches') }));
  }
  try {
    await Promise.all(services.map((service) => service.start()));
    if (existsSync(average)) await Promise.all(learners.map((learner) => learner.load(average)));
    const sources = learners.map((_, k) =>
      batches(
        demonstrations,
        template,
        tokenizer.special('<eq>'),
        randomStream(options.seed, 'sft', k, state.step),
        options,
      ),
    );
    const budget = options.minutes * 60;
    let clock = performance.now();
    let loss = 0;
    while (state.seconds < budget && !options.signal?.aborted) {
      state.step++;
      const lr = sftRate(options.lr, state.step, state.seconds / budget);
      const results = await Promise.all(
        learners.map(async (learner, k) => {
          const packed = packRows(sources[k]!.next().value);
          state.tokens += packed.tokens_T.length;
          return learner.update(packed, { kind: 'sft' }, { lr, maxGradNorm: 1 });
        }),
      );
      loss += results.reduce((sum, metrics) => sum + metrics['loss/sft_full_weight']!, 0) / results.length;
      const now = performance.now();
      state.seconds += (now - clock) / 1000;
      clock = now;
      if (state.step % options.averageEvery !== 0 && state.seconds < budget) continue;

      await synchronise(learners, out, average);
      writeJsonAtomic(stateFile, state);
      sink.log({
        'progress/step': state.step,
        'loss/sft_full_weight': loss / options.averageEvery,
        'optim/lr': lr,
        'progress/tokens': state.tokens,
        'time/total': state.seconds,
        'perf/tokens_per_s': state.tokens / state.seconds,
      });
      progress.update(
        `cold start step ${state.step} · loss ${(loss / options.averageEvery).toFixed(3)} · ${(state.tokens / 1e6).toFixed(1)} M tokens · ${(state.tokens / state.seconds).toFixed(0)} tokens/s · ${duration(budget - state.seconds)} left`,
      );
      loss = 0;
    }
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
  for (const file of ['model.safetensors', 'config.json']) cpSync(join(average, file), join(out.root, file));
  cpSync(options.tokenizer, join(out.root, 'tokenizer.json'));
  progress.line(
    `cold start written to ${out.root} after ${state.step} steps, ${(state.tokens / 1e6).toFixed(1)} M tokens, ${duration(state.seconds)}`,
  );
}

async function synchronise(learners: readonly Learner[], out: RunFolder, average: string): Promise<void> {
  const parts = learners.map((_, k) => join(out.root, 'sft', `part-${k}`));
  await Promise.all(learners.map((learner, k) => learner.save(parts[k]!)));
  const working = `${average}.writing`;
  rmSync(working, { recursive: true, force: true });
  cpSync(parts[0]!, working, { recursive: true });
  averageCheckpoints(parts, working);
  rmSync(average, { recursive: true, force: true });
  renameSync(working, average);
  if (learners.length > 1) await Promise.all(learners.map((learner) => learner.load(average)));
}
