// What the compiler says about every CUDA kernel, without a GPU: registers, shared memory, spills, occupancy, and with cuobjdump
// the instruction mix.
//
//   npx nx run native:static -- --out F [--arch 80,90] [--check]
//
// --check compares with the committed native/reports/static.json and fails on new spills or lower occupancy. cuobjdump is taken
// from the PATH or $CUOBJDUMP (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm); without both the mix is left out.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

const native = fileURLToPath(new URL('..', import.meta.url));
const committed = join(native, 'reports/static.json');
const run = promisify(execFile);

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    arch: { type: 'string', default: '80,90' },
    check: { type: 'boolean', default: false },
  },
});

/** Per multiprocessor. */
const machines = {
  80: { threads: 2048, blocks: 32, registers: 65536, shared: 164 << 10 },
  90: { threads: 2048, blocks: 32, registers: 65536, shared: 228 << 10 },
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
  return found.map(([, mangled, stack, stores, loads, registers, rest], i) => {
    const kernel = shortName(stem, names[i]);
    const shared = Number(/(\d+) bytes smem/.exec(rest)?.[1] ?? 0) + dynamicShared(kernel);
    const resources = { registers: Number(registers), shared, threads: threadsOf.get(mangled) ?? 256 };
    return [
      `sm_${arch}/${kernel}`,
      {
        ...resources,
        stack: Number(stack),
        spills: Number(stores) + Number(loads),
        ...occupancy(arch, resources),
        ...(mix[mangled] ? { instructions: mix[mangled] } : {}),
      },
    ];
  });
}

async function report() {
  const kernels = join(native, 'src/native/kernels');
  const stems = readdirSync(kernels).filter((stem) =>
    readdirSync(join(kernels, stem)).includes(`${stem}_cuda.cu`),
  );
  const folder = mkdtempSync(join(tmpdir(), 'treeward-static-'));
  const dump = cuobjdump();
  const entries = [];
  try {
    for (const arch of values.arch.split(',')) {
      for (const stem of stems) {
        entries.push(...(await compile(folder, stem, join(kernels, stem, `${stem}_cuda.cu`), arch, dump)));
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const compiler = /release [\d.]+, V([\d.]+)/.exec(
    execFileSync('nvcc', ['--version'], { encoding: 'utf8' }),
  )?.[1];
  return {
    schema: 1,
    compiler: `nvcc ${compiler}`,
    kernels: Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** What got worse against the committed report, one line each. */
function worse(now, before) {
  return Object.entries(now.kernels).flatMap(([name, kernel]) => {
    const old = before.kernels[name];
    const lines = [];
    if (kernel.spills > (old?.spills ?? 0))
      lines.push(`${name}/spills ${old?.spills ?? 0} -> ${kernel.spills} bytes`);
    if (old && kernel.occupancy < old.occupancy)
      lines.push(`${name}/occupancy ${old.occupancy} -> ${kernel.occupancy}`);
    return lines;
  });
}

try {
  execFileSync('nvcc', ['--version'], { stdio: 'ignore' });
} catch {
  process.stdout.write('static report skipped: no nvcc on the PATH (CUDA toolkit 13)\n');
  process.exit(0);
}
const now = await report();
for (const [name, k] of Object.entries(now.kernels)) {
  process.stdout.write(
    `${name.padEnd(64)} ${String(k.registers).padStart(3)} registers ${String(k.shared).padStart(6)} B shared ${String(k.spills).padStart(3)} B spilled  occupancy ${k.occupancy.toFixed(2)}\n`,
  );
}
if (values.out) writeFileSync(values.out, `${JSON.stringify(now, null, 1)}\n`);
if (values.check) {
  const lines = worse(now, JSON.parse(readFileSync(committed, 'utf8')));
  process.stdout.write(lines.length === 0 ? 'no new spills, no lower occupancy\n' : `${lines.join('\n')}\n`);
  process.exitCode = lines.length === 0 ? 0 : 1;
}
