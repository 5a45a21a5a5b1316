// What the compiler says about every CUDA kernel, without a GPU: registers, shared memory, spills, occupancy, and with cuobjdump
// the instruction mix.
//
//   npx nx run native:static -- --out F [--arch 80,90,100] [--check [--against F]] [--all] [--only OPERATOR]
//
// Rows of the benchmark format, `sm_90/<operator>/<kernel>/spills` and so on. --check compares with the committed
// native/reports/static.json and fails on new spills or lower occupancy. What the committed report was made from is compiled again
// only with --all: each operator's rows carry a hash of its sources, the headers and the compiler. cuobjdump is taken from the
// PATH or $CUOBJDUMP (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm); without both the mix is left out.
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

const native = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    arch: { type: 'string', default: '80,90,100' },
    check: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    against: { type: 'string' },
  },
});

const committed = values.against ?? join(native, 'reports/static.json');

/** Per multiprocessor. */
const machines = {
  80: { threads: 2048, blocks: 32, registers: 65536, shared: 164 << 10 },
  90: { threads: 2048, blocks: 32, registers: 65536, shared: 228 << 10 },
  100: { threads: 2048, blocks: 32, registers: 65536, shared: 228 << 10 },
  120: { threads: 1536, blocks: 24, registers: 65536, shared: 100 << 10 },
};

/** Dynamic shared memory in bytes by kernel, as the launches in the sources compute it; `T` is 4 or 2. */
function dynamicShared(kernel) {
  const bytes = kernel.includes('<float') ? 4 : 2;
  const dim = Number(/, (\d+)>/.exec(kernel)?.[1] ?? 0);
  const row = (dim + 8) * bytes;
  if (kernel.startsWith('tree_attention/forwardKernel')) return 3 * 64 * row;
  if (kernel.startsWith('tree_attention/queryGradientKernel')) return 4 * 64 * row;
  if (kernel.startsWith('tree_attention/keyGradientKernel')) return 2 * (64 + 32) * row;
  const plain = 128 * (32 + 8) * bytes;
  const major = 32 * (128 + (bytes === 4 ? 4 : 8)) * bytes;
  if (/^linear_logprob\/(forward|logitGradient)Kernel/.test(kernel)) return 2 * plain;
  if (kernel.startsWith('linear_logprob/productKernel'))
    return (kernel.includes('true, true') ? major : plain) + major;
  return 0;
}

function occupancy(arch, { registers, shared, threads }) {
  const machine = machines[arch];
  const warps = Math.ceil(threads / 32);
  // Registers are handed out per warp in units of 256, shared memory per block in units of 128 after 1 KiB for the system.
  const byRegisters = Math.floor(machine.registers / (Math.ceil((registers * 32) / 256) * 256) / warps);
  const byShared = Math.floor(machine.shared / (Math.ceil((shared + 1024) / 128) * 128));
  const blocks = Math.min(machine.blocks, Math.floor(machine.threads / threads), byRegisters, byShared);
  return { blocksPerMultiprocessor: blocks, occupancy: (blocks * warps * 32) / machine.threads };
}

function cuobjdump() {
  for (const candidate of [process.env.CUOBJDUMP, 'cuobjdump', '/usr/local/cuda/bin/cuobjdump']) {
    if (!candidate) continue;
    try {
      execFileSync(candidate, ['--version'], { stdio: 'ignore' });
      // It calls nvdisasm, which lies beside it.
      process.env.PATH = `${dirname(candidate)}:${process.env.PATH}`;
      execFileSync('nvdisasm', ['--version'], { stdio: 'ignore' });
      return candidate;
    } catch {
      continue;
    }
  }
  return null;
}

const demangled = (names) =>
  execFileSync('c++filt', { input: names.join('\n'), encoding: 'utf8' })
    .trim()
    .split('\n');

/** `void treeward::(anonymous namespace)::forwardKernel<float, 32>(…)` of tree_attention_cuda.cu → tree_attention/forwardKernel<float, 32> */
function shortName(stem, name) {
  const bare = name
    .replace(/^void /, '')
    .replaceAll('treeward::', '')
    .replaceAll('(anonymous namespace)::', '');
  const end = bare.search(/\((?!anonymous)/);
  return `${stem}/${end < 0 ? bare : bare.slice(0, end)}`;
}

const instructionClasses = {
  tensor: /^(HMMA|IMMA|QGMMA|HGMMA)/,
  fma32: /^FFMA/,
  fp64: /^D(ADD|MUL|FMA|SETP|MNMX)/,
  special: /^MUFU/,
  loadGlobal128: /^LDG\.E\.128/,
  loadGlobal: /^LDG/,
  storeGlobal: /^STG/,
  shared: /^(LDS|STS|LDSM)/,
  shuffle: /^SHFL/,
  barrier: /^(BAR|WARPSYNC)/,
  local: /^(LDL|STL)/,
};

function instructionMix(dump) {
  const mix = {};
  for (const section of dump.split(/\n\s*Function : /).slice(1)) {
    const counts = { all: 0 };
    for (const [, instruction] of section.matchAll(
      /^\s*\/\*[0-9a-f]{4,}\*\/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)/gm,
    )) {
      counts.all++;
      const kind = Object.keys(instructionClasses).find((name) => instructionClasses[name].test(instruction));
      if (kind) counts[kind] = (counts[kind] ?? 0) + 1;
    }
    mix[section.slice(0, section.indexOf('\n')).trim()] = counts;
  }
  return mix;
}

/** One kernel's rows. The instruction mix by class is the `config` of the row with their number. */
function rowsOf(
  name,
  { registers, shared, threads, stack, spills, blocksPerMultiprocessor, occupancy, mix },
) {
  const row = (what, value, unit, better, config) => ({
    name: `${name}/${what}`,
    value,
    unit,
    better,
    n: 1,
    ...(config ? { config } : {}),
  });
  const { all, ...classes } = mix ?? {};
  return [
    row('registers', registers, 'registers', 'lower', { threads }),
    row('shared', shared, 'bytes', 'lower'),
    row('spills', spills, 'bytes', 'lower', stack > 0 ? { stack } : undefined),
    row('occupancy', occupancy, 'ratio', 'higher', { blocksPerMultiprocessor }),
    ...(mix ? [row('instructions', all, 'instructions', 'lower', classes)] : []),
  ];
}

async function compile(folder, stem, source, arch, dump) {
  const cubin = join(folder, `${stem}.${arch}.cubin`);
  const keep = mkdtempSync(join(folder, 'keep-'));
  const options = [
    '-std=c++17',
    '-O3',
    '-lineinfo',
    `-arch=sm_${arch}`,
    '-Xptxas',
    '-v',
    `-I${join(native, 'src/native')}`,
  ];
  const { stderr } = await run(
    'nvcc',
    [...options, '--keep', '--keep-dir', keep, '-cubin', source, '-o', cubin],
    {
      maxBuffer: 1 << 26,
    },
  );
  const ptx = readFileSync(
    join(
      keep,
      readdirSync(keep).find((name) => name.endsWith('.ptx')),
    ),
    'utf8',
  );
  const threadsOf = new Map(
    [...ptx.matchAll(/\.entry (\w+)\([^)]*\)\s*(?:\.maxntid (\d+))?/g)].map(([, name, threads]) => [
      name,
      Number(threads ?? 256),
    ]),
  );
  const mix = dump ? instructionMix((await run(dump, ['-sass', cubin], { maxBuffer: 1 << 28 })).stdout) : {};
  const found = [
    ...stderr.matchAll(
      /Compiling entry function '(\w+)'[\s\S]*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads[\s\S]*?Used (\d+) registers([^\n]*)/g,
    ),
  ];
  const names = demangled(found.map(([, name]) => name));
  return found.flatMap(([, mangled, stack, stores, loads, registers, rest], i) => {
    const kernel = shortName(stem, names[i]);
    const shared = Number(/(\d+) bytes smem/.exec(rest)?.[1] ?? 0) + dynamicShared(kernel);
    const resources = { registers: Number(registers), shared, threads: threadsOf.get(mangled) ?? 256 };
    return rowsOf(`sm_${arch}/${kernel}`, {
      ...resources,
      stack: Number(stack),
      spills: Number(stores) + Number(loads),
      ...occupancy(arch, resources),
      mix: mix[mangled],
    });
  });
}

const compiler = () =>
  `nvcc ${/release [\d.]+, V([\d.]+)/.exec(execFileSync('nvcc', ['--version'], { encoding: 'utf8' }))?.[1]}`;

/** A source and all of ours that it includes, directly or not, but for the fibers that stand in for CUDA under g++. */
function withIncludes(file, found = new Set()) {
  if (found.has(file) || !existsSync(file) || basename(file).startsWith('fiber')) return found;
  found.add(file);
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/^#include "([^"]+)"/gm))
    withIncludes(join(native, 'src/native', name), found);
  return found;
}

/** Of everything that decides what nvcc makes of an operator's kernels. */
function sourceHash(stem) {
  const source = join(native, 'src/native/kernels', stem, `${stem}_cuda.cu`);
  const hash = createHash('sha256').update(compiler());
  for (const file of [...withIncludes(source)].sort())
    hash.update(`\0${file.slice(native.length)}\0`).update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** Runs jobs side by side, as many as there are processors; results in the order of the jobs. */
async function inParallel(jobs) {
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < jobs.length) {
      const job = next++;
      results[job] = await jobs[job]();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return results;
}

async function report(before) {
  const kernels = join(native, 'src/native/kernels');
  const stems = readdirSync(kernels)
    .filter(
      (stem) => readdirSync(join(kernels, stem)).includes(`${stem}_cuda.cu`) && stem.startsWith(values.only),
    )
    .sort();
  const sources = Object.fromEntries(stems.map((stem) => [stem, sourceHash(stem)]));
  const folder = mkdtempSync(join(tmpdir(), 'treeward-static-'));
  const dump = cuobjdump();
  const known = (arch, stem) =>
    values.all || before?.machine.sources[stem] !== sources[stem]
      ? []
      : before.rows.filter(({ name }) => name.startsWith(`sm_${arch}/${stem}/`));
  const jobs = values.arch.split(',').flatMap((arch) =>
    stems.map((stem) => async () => {
      const rows = known(arch, stem);
      if (rows.length > 0) return rows;
      process.stdout.write(`compiling ${stem} for sm_${arch}\n`);
      return compile(folder, stem, join(kernels, stem, `${stem}_cuda.cu`), arch, dump);
    }),
  );
  try {
    const rows = (await inParallel(jobs)).flat();
    return { schema: 1, machine: { compiler: compiler(), sources }, rows };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What got worse against the committed report, one line each. */
function worse(now, before) {
  const old = new Map(before.rows.map(({ name, value }) => [name, value]));
  return now.rows.flatMap(({ name, value, unit }) => {
    const was = old.get(name);
    if (name.endsWith('/spills') && value > (was ?? 0)) return [`${name} ${was ?? 0} -> ${value} ${unit}`];
    if (name.endsWith('/occupancy') && was !== undefined && value < was)
      return [`${name} ${was} -> ${value}`];
    return [];
  });
}

/** One row per line: changes are seen in a diff. */
const textOf = ({ rows, ...rest }) =>
  `${JSON.stringify(rest).slice(0, -1)},"rows":[\n${rows.map((row) => JSON.stringify(row)).join(',\n')}\n]}\n`;

try {
  execFileSync('nvcc', ['--version'], { stdio: 'ignore' });
} catch {
  process.stdout.write('static report skipped: no nvcc on the PATH (CUDA toolkit 13)\n');
  process.exit(0);
}
const before = existsSync(committed) ? JSON.parse(readFileSync(committed, 'utf8')) : undefined;
const now = await report(before?.machine?.sources ? before : undefined);
const valueOf = new Map(now.rows.map(({ name, value }) => [name, value]));
for (const name of now.rows.map((row) => row.name).filter((row) => row.endsWith('/spills'))) {
  const kernel = name.slice(0, -'/spills'.length);
  const of = (what) => String(valueOf.get(`${kernel}/${what}`)).padStart(6);
  process.stdout.write(
    `${kernel.padEnd(64)} ${of('registers')} registers ${of('shared')} B shared ${of('spills')} B spilled  occupancy ${valueOf.get(`${kernel}/occupancy`).toFixed(2)}\n`,
  );
}
if (values.out) writeFileSync(values.out, textOf(now));
if (values.check) {
  const lines = worse(now, before);
  process.stdout.write(lines.length === 0 ? 'no new spills, no lower occupancy\n' : `${lines.join('\n')}\n`);
  process.exitCode = lines.length === 0 ? 0 : 1;
}
