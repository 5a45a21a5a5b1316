// The embedded engine beside the plain loop over node-llama-cpp that it is made of (`controlledEvaluate`, one token at a time, same
// sampling, log-probability included), alternated in one run, one thread. Method: the same prompts, new ones each round, all sequences busy;
// tokens/s are sampled tokens over wall time, prompts' evaluation included; both get new contexts several times, made in turn first
// and second, because a process's memory layout alone decides over 15 %; the ratio is the median over all rounds of the plain loop's
// processor time over the engine's (both use one thread; `wall_ratio` beside it). Then eight
// rollouts at a time, whose prompts grow by what was sampled and a tool result: tokens found in the cache over tokens of earlier context.
// Run: npx nx run policy:bench -- [--quick] [--out FILE]
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { getLlama, LlamaLogLevel, TokenBias, type Token } from 'node-llama-cpp';
import { randomStream, readTensors, writeBenchRows, type BenchRow } from '@treeward/base';
// By name: this file is compiled to out-tsc/, and what is timed is the built package.
import { engineEnvironment, LlamaEngine, llamaVersion, type SampleRequest } from '@treeward/policy';
import { writeTinyGguf } from './testing/tiny-gguf.js';
import { tensorShapes, type TinyConfig } from './testing/tiny-model.js';

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, out: { type: 'string' } },
});
for (const [name, value] of Object.entries(engineEnvironment)) {
  if (process.env[name] !== value) throw new Error(`start with ${name}=${value}: sequences would mix`);
}
/** Fresh contexts of both, and turns on each. Where the weights and caches come to lie makes either of them 15 % slower or faster. */
const LAYOUTS = values.quick ? 4 : 8;
const TURNS = values.quick ? 2 : 4;
const ROUNDS = LAYOUTS * TURNS;
const PROMPT = 130;
const SAMPLED = 40;
const bannedIds = [0, 1, 2, 3, 4];
const dir = mkdtempSync(join(tmpdir(), 'policy-bench-'));
const path = join(dir, 'cold-start.gguf');
writeCheckpoint(new URL('../../../../../datasets/cold-start/', import.meta.url), path);

/** No two share a beginning, so that nothing is found in a cache that the plain loop does not have. */
const prompt = (round: number, sequence: number): number[] => {
  const random = randomStream('bench', `${round}/${sequence}`);
  return Array.from({ length: PROMPT }, () => 10 + random.below(700));
};
const sampling = (seed: string): SampleRequest['sampling'] => ({
  temperature: 1,
  topP: 1,
  topK: 0,
  bannedIds,
  maxTokens: SAMPLED,
  seed,
});

type Name = 'engine' | 'raw';
/** Both work on one thread: on a shared machine its processor time is what their code costs, wall time what the neighbours do. */
type Times = Record<Name, number[]>;

const rows: BenchRow[] = [];
for (const sequences of [1, 8, 32]) rows.push(...(await throughput(sequences)));
rows.push(await prefixHits());
rmSync(dir, { recursive: true });

async function throughput(sequences: number): Promise<BenchRow[]> {
  const seconds: Times = { engine: [], raw: [] };
  const cpuSeconds: Times = { engine: [], raw: [] };
  let tokens = { engine: 0, raw: 0 };
  for (let layout = 0; layout < LAYOUTS; layout++) {
    const runs = await contexts(sequences, layout % 2 === 0 ? ['engine', 'raw'] : ['raw', 'engine']);
    for (let turn = 0; turn <= TURNS; turn++) {
      const round = layout * (TURNS + 1) + turn;
      const prompts = Array.from({ length: sequences }, (_, i) => prompt(round, i));
      const order = round % 2 === 0 ? (['engine', 'raw'] as const) : (['raw', 'engine'] as const);
      for (const name of order) {
        const started = performance.now();
        const cpu = process.cpuUsage();
        const sampled = await runs[name].run(prompts);
        const { user, system } = process.cpuUsage(cpu);
        // The first turn warms up.
        if (turn > 0) {
          seconds[name].push((performance.now() - started) / 1000);
          cpuSeconds[name].push((user + system) / 1e6);
        }
        tokens = { ...tokens, [name]: sampled };
      }
    }
    await runs.engine.close();
    await runs.raw.close();
  }
  const expected = sequences * SAMPLED;
  if (tokens.engine !== expected || tokens.raw !== expected) {
    throw new Error(`unequal work: ${tokens.engine} and ${tokens.raw} tokens, expected ${expected}`);
  }
  const ours = expected / median(seconds.engine);
  const paired = (times: Times): number => median(times.raw.map((raw, i) => raw / times.engine[i]!));
  const ofRaw = paired(cpuSeconds);
  const common = {
    unit: 'tokens/s',
    better: 'higher' as const,
    n: ROUNDS,
    config: {
      sequences,
      layouts: LAYOUTS,
      prompt: PROMPT,
      sampled: SAMPLED,
      threads: 1,
      stat: 'p50',
      llama: llamaVersion(),
    },
  };
  return [
    { name: `tokens_per_s/${sequences}`, value: ours, ...common },
    {
      ...common,
      name: `tokens_per_s/${sequences}/of_raw`,
      value: ofRaw,
      unit: 'ratio',
      against: 'node-llama-cpp controlledEvaluate loop',
      ratio: ofRaw,
      config: { ...common.config, stat: 'p50 of paired rounds, processor time', wall_ratio: paired(seconds) },
    },
  ];
}

interface Runs {
  /** Samples after every prompt, all at once; how many tokens. */
  run(prompts: number[][]): Promise<number>;
  close(): Promise<void>;
}

async function contexts(sequences: number, order: readonly Name[]): Promise<Record<Name, Runs>> {
  const made: Partial<Record<Name, Runs>> = {};
  for (const name of order) made[name] = await (name === 'engine' ? engineRuns : rawRuns)(sequences);
  return made as Record<Name, Runs>;
}

async function engineRuns(sequences: number): Promise<Runs> {
  const engine = new LlamaEngine({ contextLength: 768, sequences });
  await engine.load({ id: 'bench', version: 0 }, { format: 'gguf', path });
  let calls = 0;
  const ask = (ids: number[], i: number) =>
    engine.sample('current', {
      prompt: Int32Array.from(ids),
      stopIds: [],
      tag: `r${i}`,
      sampling: sampling(`${calls++}/${i}`),
    });
  const run = async (prompts: number[][]): Promise<number> => {
    const all = await Promise.all(prompts.map(ask));
    return all.reduce((sum, { logprobs }) => sum + logprobs.length, 0);
  };
  return { run, close: () => engine.close() };
}

/** What one would write with the library alone, with the engine's context settings. */
async function rawRuns(sequences: number): Promise<Runs> {
  const llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: 1 });
  const model = await llama.loadModel({ modelPath: path, useMmap: false });
  const context = await model.createContext({
    contextSize: 769,
    sequences,
    threads: 1,
    batchSize: 512,
    flashAttention: false,
    experimentalKvCacheKeyType: 'F32',
    experimentalKvCacheValueType: 'F32',
    failedCreationRemedy: false,
  });
  const all = Array.from({ length: sequences }, () => context.getSequence());
  const tokenBias = TokenBias.for(model);
  for (const id of bannedIds) tokenBias.set(id as Token, 'never');
  const run = async (prompts: number[][]): Promise<number> => {
    const counts = await Promise.all(
      all.map(async (sequence, i) => {
        await sequence.clearHistory();
        let pending = prompts[i]!;
        let logprob = 0;
        let count = 0;
        for (; count < SAMPLED; count++) {
          const last = pending.length - 1;
          const options = { temperature: 1, topK: 0, topP: 1, tokenBias, seed: 1000 * i + count };
          const generateNext = { token: true, confidence: true, options };
          const output = await sequence.controlledEvaluate(
            pending.map((id, t) => (t === last ? [id as Token, { generateNext }] : (id as Token))),
          );
          const { token, confidence } = output[last]!.next;
          logprob += Math.log(confidence!);
          pending = [token!];
        }
        if (!Number.isFinite(logprob)) throw new Error('log-probabilities were not finite');
        return count;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };
  return { run, close: () => llama.dispose() };
}

async function prefixHits(): Promise<BenchRow> {
  const [concurrent, waves, turns] = [8, values.quick ? 2 : 4, 5];
  const engine = new LlamaEngine({ contextLength: 768, sequences: concurrent });
  await engine.load({ id: 'bench', version: 0 }, { format: 'gguf', path });
  let [earlier, found, copied] = [0, 0, 0];
  for (let wave = 0; wave < waves; wave++) {
    // A head that all share, then each rollout's own task.
    const contexts = Array.from({ length: concurrent }, (_, i) => [
      ...prompt(0, 0).slice(0, 60),
      ...prompt(17 * wave + i, 1).slice(0, 70),
    ]);
    for (let turn = 0; turn < turns; turn++) {
      const before = engine.stats();
      await Promise.all(
        contexts.map(async (context, i) => {
          const tag = `w${wave}r${i}`;
          const { tokens } = await engine.sample('current', {
            prompt: Int32Array.from(context),
            stopIds: [],
            tag,
            sampling: { ...sampling(`${tag}/${turn}`), maxTokens: 20 },
          });
          const result = prompt(17 * wave + i + turn, 2).slice(0, 40);
          if (turn < turns - 1) earlier += context.length + tokens.length;
          contexts[i] = [...context, ...tokens, ...result];
        }),
      );
      const after = engine.stats();
      copied += after.copiedTokens - before.copiedTokens;
      // What a first turn finds is another rollout's: it does not count.
      if (turn > 0) found += after.reusedTokens - before.reusedTokens;
    }
  }
  const { promptTokens } = engine.stats();
  await engine.close();
  return {
    name: 'prefix_hit_rate',
    value: found / earlier,
    unit: 'ratio',
    better: 'higher',
    n: waves * concurrent,
    config: {
      concurrent,
      turns,
      earlier_tokens: earlier,
      found_tokens: found,
      copied_across_rollouts: copied,
      prompt_tokens: promptTokens,
    },
  };
}

/** The committed checkpoint in the sampler's format, by the test's own small writer: benches may not depend on the learner. */
function writeCheckpoint(checkpoint: URL, to: string): void {
  const raw = JSON.parse(readFileSync(new URL('config.json', checkpoint), 'utf8')) as TinyConfig;
  const { tensors } = readTensors(fileURLToPath(new URL('model.safetensors', checkpoint)));
  const missing = tensorShapes(raw).find(([name]) => !tensors.has(name));
  if (missing) throw new Error(`datasets/cold-start has no tensor ${missing[0]}`);
  writeTinyGguf(to, raw, tensors);
}

function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)]!;
}

for (const { name, value, unit, n } of rows)
  console.log(`${name.padEnd(26)} ${value.toPrecision(4).padStart(9)} ${unit}  n=${n}`);
if (values.out) writeBenchRows(values.out, rows);
