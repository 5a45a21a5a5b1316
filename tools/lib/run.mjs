import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { BootError } from './errors.mjs';
import { explainNetwork } from './network.mjs';

const TAIL_CHARACTERS = 20_000;
const children = new Set();
let interruptedBy;

/** Which signal ended this run early, if one did. */
export const interrupted = () => interruptedBy;

/**
 * Passes SIGINT, SIGTERM and SIGHUP on to every child and waits for them, instead of dying first and leaving
 * them behind. Ctrl-C reaches the whole foreground group by itself, so SIGINT from a terminal is not doubled.
 */
export function forwardSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      interruptedBy ??= signal;
      const fromTerminal = signal === 'SIGINT' && process.stdin.isTTY;
      for (const child of children) if (!fromTerminal) child.kill(signal);
      if (children.size === 0) process.exit(exitCodeOf(null, signal));
    });
  }
}

/** The shell's convention: a child killed by signal n counts as 128 + n. */
export const exitCodeOf = (code, signal) => code ?? 128 + (constants.signals[signal] ?? 1);

/**
 * Runs a command quietly: output goes to `log`, its tail is kept. Resolves with what it printed on stdout.
 * Throws `BootError` with `code`; for a command that downloads (`fetches`), with `BOOT_E_NETWORK` when its output
 * says that the other side could not be reached.
 */
export function run(command, args, options) {
  const { cwd, env = process.env, log, what, fetches = false, code = 'BOOT_E_COMMAND', hints = [] } = options;
  return new Promise((fulfil, reject) => {
    if (interruptedBy) {
      reject(
        new BootError('BOOT_E_INTERRUPTED', `stopped before: ${what}`, {
          hints: ['run the same command again'],
        }),
      );
      return;
    }
    mkdirSync(dirname(log), { recursive: true });
    const sink = createWriteStream(log, { flags: 'a' });
    sink.write(`$ ${command} ${args.join(' ')}\n`);
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    let tail = '';
    let stdout = '';
    const keep = (chunk) => {
      sink.write(chunk);
      tail = (tail + chunk).slice(-TAIL_CHARACTERS);
    };
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
      keep(chunk);
    });
    child.stderr.on('data', keep);
    const settle = (problem) => {
      children.delete(child);
      sink.end();
      if (problem === undefined) fulfil(stdout);
      else reject(problem);
    };
    child.on('error', (cause) => {
      settle(new BootError(code, `${what}: cannot start ${command} (${cause.code})`, { hints, log, cause }));
    });
    child.on('close', (status, signal) => {
      if (status === 0) return settle(undefined);
      if (interruptedBy) {
        return settle(
          new BootError('BOOT_E_INTERRUPTED', `${what} was interrupted by ${interruptedBy}`, {
            hints: ['run the same command again: what is already there is kept'],
          }),
        );
      }
      const network = fetches ? explainNetwork(tail) : undefined;
      if (network !== undefined) {
        return settle(
          new BootError('BOOT_E_NETWORK', `could not fetch ${what}: ${network}`, {
            hints: [
              'check the network connection, proxy and registry settings of npm, pip and apt, then run the same command again',
              'on a machine without network, copy the cache folder (~/.cache/treeward) and node_modules from one that has it',
            ],
            log,
          }),
        );
      }
      const last = tail.trim().split('\n').slice(-12).join('\n    ');
      const end = signal === null ? `exit code ${status}` : `signal ${signal}`;
      settle(new BootError(code, `${what} failed with ${end}:\n    ${last}`, { hints, log }));
    });
  });
}

/**
 * Hands the terminal to a command and resolves with its exit code. The child shares our standard streams;
 * signals are passed on (see `forwardSignals`). After `timeoutMs` it gets SIGTERM, 15 s later SIGKILL.
 */
export function runInteractive(command, args, { cwd, env = process.env, stdio = 'inherit', timeoutMs } = {}) {
  return new Promise((fulfil, reject) => {
    const child = spawn(command, args, { cwd, env, stdio });
    children.add(child);
    const timers = [];
    if (timeoutMs !== undefined) {
      const stop = (signal) => {
        process.stderr.write(
          `[timeout] ${signal} to ${args[0] ?? command} after ${timeoutMs / 60_000} minutes\n`,
        );
        child.kill(signal);
      };
      timers.push(setTimeout(stop, timeoutMs, 'SIGTERM'), setTimeout(stop, timeoutMs + 15_000, 'SIGKILL'));
    }
    child.on('error', (error) => {
      children.delete(child);
      reject(error);
    });
    child.on('exit', (code, signal) => {
      for (const timer of timers) clearTimeout(timer);
      children.delete(child);
      fulfil(exitCodeOf(code, signal));
    });
  });
}
