import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BootError } from './lib/errors.mjs';
import { checkNode } from './lib/node-version.mjs';
import { cacheRoot, root, writableFolder } from './lib/paths.mjs';
import { progressPrinter, setupReport, withEarlierWork } from './lib/report.mjs';
import { schedule } from './lib/schedule.mjs';
import { readStamp, writeStamp } from './lib/stamp.mjs';
import { nativeBuild, tensorflowOperators, typescriptBuild } from './steps/build.mjs';
import { browser, docker } from './steps/for-tests.mjs';
import { harness } from './steps/harnesses.mjs';
import { libtensorflow } from './steps/libtensorflow.mjs';
import { npmPackages } from './steps/npm-packages.mjs';
import { systemPackages } from './steps/system-packages.mjs';
import { tfjsBinding } from './steps/tfjs-binding.mjs';

/** All pins of things fetched outside package-lock.json. */
export const pins = JSON.parse(readFileSync(join(root, 'tools/pins.json'), 'utf8'));

/** Written by every setup; the run summary takes `totalSeconds`, the time before training began, from it. */
export const reportFile = join(root, '.treeward-setup.json');

/** What every command but the main job needs: all steps save the harnesses, in the order they are shown. */
export const CORE_STEPS = [
  'npm-packages',
  'system-packages',
  'libtensorflow',
  'tfjs-binding',
  'native',
  'tensorflow-operators',
  'typescript',
];

/** Only tests use these. */
const FOR_TESTS = ['docker', 'browser'];

/** The harness CLIs and the node that OpenClaw runs on. */
export const HARNESS_STEPS = Object.keys(pins.harnesses).map((name) => `harness-${name}`);

function makeSteps(printer, only) {
  const context = (id, title) => ({
    root,
    cache: cacheRoot(),
    env: process.env,
    pins,
    log: join(root, `.treeward-setup/${id}.log`),
    say: (text) => printer.say(title, text),
  });
  const makers = [
    ['npm-packages', 'npm packages', npmPackages],
    ['system-packages', 'system packages', systemPackages],
    ['docker', 'docker for tests', docker],
    ['browser', 'browser for tests', browser],
    ['libtensorflow', 'libtensorflow', libtensorflow],
    ['tfjs-binding', 'tfjs-node binding', tfjsBinding],
    ['native', 'native', nativeBuild],
    ['tensorflow-operators', 'TensorFlow operators', tensorflowOperators],
    ['typescript', 'TypeScript build', typescriptBuild],
    ...Object.keys(pins.harnesses).map((name) => [
      `harness-${name}`,
      `harness ${name}`,
      (given) => harness(given, name),
    ]),
  ];
  return makers
    .filter(([id]) => (only === undefined ? !FOR_TESTS.includes(id) : only.includes(id)))
    .map(([id, title, make]) => make(context(id, title)));
}

/**
 * Brings this checkout to where Treeward runs: npm packages, system packages, libtensorflow, builds, harnesses.
 * What is already there is left alone. `optional` names steps whose failure is reported but does not stop.
 *
 * @returns the report of this run, see `setupReport`
 * @throws BootError of the first failed step, `BOOT_E_NODE_VERSION`, `BOOT_E_NOT_WRITABLE`
 */
export async function setup({ only, optional = [] } = {}) {
  checkNode(pins.node.ranges);
  writableFolder(cacheRoot());
  writableFolder(root);
  const began = performance.now();
  const startedAt = new Date().toISOString();
  const printer = progressPrinter();
  const steps = makeSteps(printer, only);
  const records = await schedule(steps, {
    onEnd: (_, record) => printer.end(record),
  });
  const totalSeconds = Math.round((performance.now() - began) / 100) / 10;
  const report = setupReport(records, { pins, totalSeconds, startedAt, cache: cacheRoot() });
  writeStamp(reportFile, withEarlierWork(report, readStamp(reportFile)));
  const fatal = records.filter((record) => !optional.includes(record.id) && record.error !== undefined);
  if (fatal.length > 0) {
    const [first] = fatal;
    if (first.error instanceof BootError) throw new SetupFailed(fatal, first.error.code);
    throw first.error;
  }
  return report;
}

/** Each failed step has already been printed when it failed; this says which ones and what to do. */
class SetupFailed extends BootError {
  constructor(failed, code) {
    super(code, `not set up: ${failed.map((record) => record.title).join(', ')} (reasons above)`, {
      hints: ['what did succeed is kept: the same command goes on from here'],
    });
    this.name = 'SetupFailed';
  }
}
