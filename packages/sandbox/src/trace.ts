import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { readEntry } from './tree.js';
import type { Execution } from './types.js';

/**
 * The process witness: strace is bwrap's parent, outside the sandbox's seccomp filter and out of the task's reach. With
 * `--seccomp-bpf` only the traced calls stop a process, so input and output cost nothing.
 */
export const TRACE_FILE = 'exec';
/** What makes the sandbox, not what runs in it. */
const OWN = /^(.*\/bwrap|\/run\/treeward\/init)$/;
const LONGEST_ARGUMENT = 2000;
const CANDIDATES = ['/usr/bin/strace', '/bin/strace', '/usr/local/bin/strace'];

/** @throws TreewardError SANDBOX_E_TRACE */
export function stracePath(): string {
  const path = CANDIDATES.find((candidate) => existsSync(candidate));
  if (path !== undefined) return path;
  throw new TreewardError('SANDBOX_E_TRACE', 'commands cannot be watched: strace is not installed', {
    hints: ['apt-get install strace', 'or open sandboxes without `trace`'],
  });
}

/** What stands before bwrap's command. `directory` is the sandbox's, as launch.c lays it out. */
export function tracer(strace: string, directory: string): string[] {
  return [
    strace,
    ...['-f', '--seccomp-bpf', '--quiet=attach,personality', '-ttt', '--decode-pids=pidns'],
    ...['-e', 'trace=execve,clone,clone3,fork,vfork', '-e', 'signal=!chld,urg'],
    ...['-s', String(LONGEST_ARGUMENT), '-o', join(directory, 't', TRACE_FILE), '--'],
  ];
}

/** What the file says so far; a torn last line is left out. */
export async function readTrace(path: Buffer): Promise<Execution[]> {
  const pieces: Buffer[] = [];
  for await (const piece of readEntry(path)) pieces.push(Buffer.from(piece));
  const text = Buffer.concat(pieces).toString('latin1');
  return parseTrace(text.slice(0, text.lastIndexOf('\n') + 1)).filter(({ argv }) => !OWN.test(argv[0] ?? ''));
}

const LINE = /^(\d+) +(\d+\.\d+) (.*)$/;
const EXECVE = /^execve\((".*?(?<!\\)"), \[(.*)\], 0x[0-9a-f]+ \/\* \d+ vars? \*\/\) = 0$/;
const CHILD = /^(?:<\.\.\. )?(?:clone3?|v?fork)\b.* = (\d+)(?: \/\* (\d+) in strace's PID NS \*\/)?$/;
const EXIT = /^\+\+\+ (?:exited with (\d+)|killed by (\w+)).*\+\+\+$/;
/** execve that another thread interrupts is printed in two pieces. */
const UNFINISHED = /^(.*) <unfinished \.\.\.>$/;
const RESUMED = /^<\.\.\. execve resumed>(.*)$/;

/** strace's lines to executions. Failed execve calls (a search along PATH) are none. */
export function parseTrace(text: string): Execution[] {
  const done: Execution[] = [];
  const running = new Map<number, Execution>();
  const parents = new Map<number, number>();
  const begun = new Map<number, string>();
  const end = (pid: number, time: number, code: number | null, signal: string | null): void => {
    const execution = running.get(pid);
    if (!execution) return;
    Object.assign(execution, { end: time, code, signal });
    running.delete(pid);
  };

  for (const line of text.split('\n')) {
    const [, pidText, seconds, rest] = LINE.exec(line) ?? [];
    if (rest === undefined) continue;
    const pid = Number(pidText);
    const time = Number(seconds) * 1000;
    const whole = rest.startsWith('<... execve')
      ? (begun.get(pid) ?? '') + (RESUMED.exec(rest)?.[1] ?? '')
      : rest;

    const exec = EXECVE.exec(whole);
    const child = CHILD.exec(rest);
    const exit = EXIT.exec(rest);
    if (exec) {
      end(pid, time, null, null); // replaced by another program: how the first one ended is not a question
      const execution: Execution = {
        pid,
        parentPid: parents.get(pid) ?? 0,
        argv: argumentsOf(exec[2]!),
        start: time,
        end: null,
        code: null,
        signal: null,
      };
      running.set(pid, execution);
      done.push(execution);
    } else if (child) {
      parents.set(Number(child[2] ?? child[1]), pid);
    } else if (exit) {
      end(pid, time, exit[1] === undefined ? null : Number(exit[1]), exit[2] ?? null);
    } else {
      const unfinished = UNFINISHED.exec(rest)?.[1];
      if (unfinished?.startsWith('execve(')) begun.set(pid, unfinished);
    }
  }
  // A child may run its first program before its parent's line says who made it.
  for (const execution of done) execution.parentPid ||= parents.get(execution.pid) ?? 0;
  return done;
}

/** The inside of strace's argv brackets: C strings, each followed by `...` when it was cut. */
function argumentsOf(list: string): string[] {
  return [...list.matchAll(/"((?:[^"\\]|\\.)*)"(?:\.\.\.)?/gs)].map(([, body]) => unescape(body!));
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', v: '\v', f: '\f' };

/** strace writes bytes over 126 as octal; together they are UTF-8. */
function unescape(body: string): string {
  const bytes = body.replace(/\\([0-7]{1,3}|x[0-9a-f]{2}|.)/gs, (_, code: string) => {
    if (/^[0-7]/.test(code)) return String.fromCharCode(parseInt(code, 8));
    if (/^x[0-9a-f]/.test(code)) return String.fromCharCode(parseInt(code.slice(1), 16));
    return ESCAPES[code] ?? code;
  });
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
