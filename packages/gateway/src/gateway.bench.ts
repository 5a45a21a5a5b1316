// Time that the gateway adds to a call: parse, match, encode what is new, render, record, in front of an engine that answers
// at once. Method: server and client are two processes; beside the gateway, in the same run, a bare node:http server that
// parses the same bodies and says the same bytes. `added` is the difference of the medians at equal concurrency, every
// client sending its next turn as soon as it has the reply (at 64 and 1,000 clients most of a turn is therefore waiting
// for the one core that serves them all). Cold: a rollout's first call, with a text that nobody has encoded yet.
// Run: npx nx run gateway:bench -- [--quick] [--out FILE] [--filter TEXT]
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeBenchRows, type BenchRow } from '@treeward/base';
import { BenchClient, BenchServer, drive, type Answer, type Load } from './testing/bench-client.js';
import type { BodySize } from './testing/bench-load.js';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    filter: { type: 'string', default: '' },
  },
});

const TOKENIZER = resolve(import.meta.dirname, '../../../../../datasets/cold-start/tokenizer.json');

interface Scenario {
  size: BodySize;
  clients: number;
  stream: boolean;
  turns: number;
  warmUp?: number;
  pauseMs?: number;
}

const scenarios: Scenario[] = (['50KB', '1MB'] as const).flatMap((size) =>
  [1, 64, 1000].flatMap((clients) =>
    [true, false].map((stream) => ({
      size,
      clients,
      stream,
      turns: turnsOf(size, clients),
    })),
  ),
);

function turnsOf(size: BodySize, clients: number): number {
  const requests = (size === '1MB' ? 300 : 3000) * (values.quick ? 0.34 : 1);
  return Math.max(2, Math.min(Math.round(requests / clients), clients === 1 ? 200 : 50));
}

const rows: BenchRow[] = [];
function add(row: BenchRow): void {
  rows.push(row);
  const ratio = row.ratio === undefined ? '' : `  ratio ${row.ratio.toFixed(3)}`;
  console.log(
    `${row.name.padEnd(46)} ${row.value.toPrecision(3).padStart(9)} ${row.unit}  n=${row.n}${ratio}`,
  );
}

const at = (times: readonly number[], share: number): number =>
  [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))]!;

/** Mean milliseconds of each phase, from the gateway's own metrics. */
function phasesOf(metrics: string): Record<string, number> {
  const read = (what: string): Map<string, number> =>
    new Map(
      [...metrics.matchAll(new RegExp(`phase_seconds_${what}\\{phase="(\\w+)"\\} (\\S+)`, 'g'))].map(
        ([, phase, value]) => [phase!, Number(value)],
      ),
    );
  const counts = read('count');
  return Object.fromEntries(
    [...read('sum')].map(([phase, sum]) => [phase, Number(((1000 * sum) / counts.get(phase)!).toFixed(3))]),
  );
}

interface Measured {
  load: Load;
  loopDelayP99Ms: number;
  /** Server's and client's processes, all threads, per request: shows which of the two a rate is bound by. */
  cpuMs: number;
  clientCpuMs: number;
  phases: Record<string, number>;
  bytesPerRollout: number;
}

async function measure(
  { size, clients, stream, turns, warmUp = 0, pauseMs = 0 }: Scenario,
  answer: Answer | null,
): Promise<Measured> {
  const server = new BenchServer();
  const { endpoints } = await server.open(
    answer
      ? { kind: 'bare', sockets: clients, answer }
      : { kind: 'gateway', tokenizer: TOKENIZER, rollouts: clients },
  );
  const all = endpoints.map((endpoint, seed) => new BenchClient(endpoint, size, stream, seed));
  const before = await server.memory();
  let cpu = process.cpuUsage();
  const load = await drive(all, {
    turns,
    warmUp,
    pauseMs,
    onWarm: async () => {
      await server.look();
      cpu = process.cpuUsage();
    },
  });
  const { user, system } = process.cpuUsage(cpu);
  const { metrics, loopDelayP99Ms, cpuMs } = await server.look();
  for (const client of all) client.close();
  const after = await server.memory();
  await server.stop();
  const requests = load.warm.length;
  return {
    load,
    loopDelayP99Ms,
    cpuMs: cpuMs / requests,
    clientCpuMs: (user + system) / 1000 / requests,
    phases: phasesOf(metrics),
    bytesPerRollout: (after - before) / clients,
  };
}

/** Both servers on one scenario; refuses to go on when the gateway's replies are not what the engine said. */
async function both(scenario: Scenario): Promise<{ ours: Measured; bare: Measured }> {
  const ours = await measure(scenario, null);
  if (ours.load.errors > 0 && scenario.clients < 1000) {
    throw new Error(`${ours.load.errors} wrong answers, last: ${ours.load.last.text}; nothing timed`);
  }
  return { ours, bare: await measure(scenario, ours.load.last) };
}

for (const scenario of scenarios) {
  const { size, clients, stream, turns } = scenario;
  const place = `${size}/${clients}${stream ? '' : '/json'}`;
  const names = [
    'added_latency_p50_ms',
    ...(clients === 64 ? ['loop_delay_p99_ms/saturated'] : []),
    ...(clients === 1000 ? ['errors/1000', 'memory_per_rollout_kb'] : []),
  ];
  if (values.filter && !names.some((name) => `${name}/${place}`.includes(values.filter))) continue;
  const { ours, bare } = await both(scenario);
  const config = {
    turns,
    p50: at(ours.load.warm, 0.5),
    p99: at(ours.load.warm, 0.99),
    bareP50: at(bare.load.warm, 0.5),
    requestsPerSecond: ours.load.warm.length / ours.load.seconds,
    bareRequestsPerSecond: bare.load.warm.length / bare.load.seconds,
    phaseMeanMs: ours.phases,
  };
  const n = ours.load.warm.length;
  const lower = { unit: 'ms', better: 'lower' as const };
  add({ name: `added_latency_p50_ms/${place}`, value: config.p50 - config.bareP50, ...lower, n, config });
  add({
    name: `added_latency_cold_p50_ms/${place}`,
    value: at(ours.load.cold, 0.5) - at(bare.load.cold, 0.5),
    ...lower,
    n: clients,
  });
  const headline = size === '50KB' && stream;
  if (clients === 64) {
    const value = ours.loopDelayP99Ms;
    add({
      name: `loop_delay_p99_ms/saturated/${place}`,
      value,
      ...lower,
      n: 1,
      config: { bare: bare.loopDelayP99Ms },
    });
  }
  if (clients === 1000) {
    const value = ours.load.errors;
    add({
      name: `errors/1000${headline ? '' : `/${place}`}`,
      value,
      unit: 'requests',
      better: 'lower',
      n: n + clients,
    });
    add({
      name: `memory_per_rollout_kb/${place}`,
      value: ours.bytesPerRollout / 1024,
      unit: 'KiB',
      better: 'lower',
      n: clients,
      config: { turns },
    });
  }
}

// 64 harnesses that work between their turns, faster than any real one does.
if (!values.filter || 'loop_delay_p99_ms/paced'.includes(values.filter)) {
  const paced: Scenario = {
    size: '50KB',
    clients: 64,
    stream: true,
    turns: values.quick ? 8 : 24,
    pauseMs: 500,
  };
  const { ours, bare } = await both(paced);
  add({
    name: 'loop_delay_p99_ms',
    value: ours.loopDelayP99Ms,
    unit: 'ms',
    better: 'lower',
    n: ours.load.warm.length,
    config: {
      ...paced,
      bare: bare.loopDelayP99Ms,
      requestsPerSecond: ours.load.warm.length / ours.load.seconds,
      p50: at(ours.load.warm, 0.5),
    },
  });
}

if (!values.filter || 'throughput/small/of_stream'.includes(values.filter)) {
  const turns = values.quick ? 30 : 100;
  const runs = [];
  for (let i = 0; i < (values.quick ? 1 : 3); i++) {
    const { ours, bare } = await both({ size: 'small', clients: 64, stream: true, turns, warmUp: 60 });
    const rate = ({ load }: Measured): number => load.warm.length / load.seconds;
    const cpu = {
      ours: ours.cpuMs,
      oursClient: ours.clientCpuMs,
      bare: bare.cpuMs,
      bareClient: bare.clientCpuMs,
    };
    runs.push({ ours: rate(ours), bare: rate(bare), phases: ours.phases, cpu });
  }
  const sorted = runs.sort((a, b) => a.ours / a.bare - b.ours / b.bare);
  const middle = sorted[sorted.length >> 1]!;
  add({
    name: 'throughput/small/of_stream',
    value: middle.ours,
    unit: 'requests/s',
    better: 'higher',
    against: 'bare node:http',
    ratio: middle.ours / middle.bare,
    n: 64 * turns * runs.length,
    config: {
      bare: middle.bare,
      clients: 64,
      cpuMsPerRequest: middle.cpu,
      phaseMeanMs: middle.phases,
    },
  });
}

if (values.out) writeBenchRows(values.out, rows);
