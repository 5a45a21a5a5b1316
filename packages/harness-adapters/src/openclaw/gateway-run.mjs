// OpenClaw in gateway mode as one command: starts its gateway, waits until it serves, sends one message, waits for the
// sub-agents that the message started, ends the gateway. Exit code and stdout are the client's.
// Usage: node gateway-run.mjs <port> <openclaw entry> <arguments of the client…>
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';

const START_MS = 120_000;
/** Nothing may have begun for this long: a child's result reaches its parent as a new turn, a moment after it ended. */
const QUIET_MS = 1500;
const STATE = join(process.env.HOME, '.openclaw');
const [port, entry, ...client] = process.argv.slice(2);

// What was preloaded here is for OpenClaw's processes.
const gateway = spawn(process.execPath, [...process.execArgv, entry, 'gateway', 'run', '--port', port], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
let log = '';
for (const stream of [gateway.stdout, gateway.stderr]) {
  stream.setEncoding('utf8').on('data', (text) => (log = (log + text).slice(-20_000)));
}
let ended = false;
const gone = new Promise((resolve) => gateway.on('exit', resolve)).then(() => (ended = true));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const answers = () =>
  new Promise((resolve) => {
    const socket = createConnection(Number(port), '127.0.0.1');
    socket.on('connect', () => (socket.destroy(), resolve(true)));
    socket.on('error', () => resolve(false));
  });

// The port opens before the gateway can run an agent: only its log says when that is.
const serves = async () => /\bready\b/.test(log) && (await answers());

const state = (file) => {
  try {
    return JSON.parse(readFileSync(join(STATE, file), 'utf8'));
  } catch {
    return {}; // not there yet, or just being written
  }
};

/** A child at work, a result on its way to the parent, or an agent in the middle of a turn. */
const busy = () =>
  Object.values(state('subagents/runs.json').runs ?? {}).some(
    ({ execution, delivery }) => execution?.status !== 'terminal' || delivery?.status === 'pending',
  ) || Object.values(state('agents/main/sessions/sessions.json')).some(({ status }) => status === 'running');

async function settle() {
  for (let quiet = 0; quiet < QUIET_MS && !ended; quiet += 100) {
    await sleep(100);
    if (busy()) quiet = 0;
  }
}

async function main() {
  const deadline = Date.now() + START_MS;
  while (!(await serves())) {
    if (ended || Date.now() > deadline) {
      process.stderr.write(`the gateway did not come up\n${log}`);
      return 70;
    }
    await sleep(100);
  }
  const agent = spawn(process.execPath, [...process.execArgv, entry, ...client], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise((resolve) => agent.on('exit', (status) => resolve(status ?? 1)));
  await settle();
  gateway.kill('SIGTERM');
  const timer = setTimeout(() => gateway.kill('SIGKILL'), 5000);
  await gone;
  clearTimeout(timer);
  return code;
}

process.exitCode = await main();
if (process.execArgv.some((option) => option.includes('?record='))) {
  gateway.kill('SIGTERM'); // what it loaded is to be kept, and that is written at its end
  await Promise.race([gone, sleep(10_000)]);
}
gateway.kill('SIGKILL');
