// An agent loop with nothing hidden: prompt on stdin, Chat Completions by HTTP, four tools, a transcript of every step.
// Runs inside the sandbox on a bare Node, so it has no imports but Node's own and is not compiled.
// Exit codes: 0 final answer, 1 turn limit, 2 the model could not be reached or refused the request.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const VERSION = '1.0.0';
const { LOOP_BASE_URL, LOOP_KEY = '', LOOP_TRANSCRIPT } = process.env;
const MAX_TURNS = Number(process.env.LOOP_MAX_TURNS ?? 10); // model calls, resampled ones included
const MAX_RESAMPLES = 2; // per turn, after a malformed reply
const MAX_ATTEMPTS = 8; // per model call, on connection errors and overload
const MAX_RESULT = 16_000; // characters of one tool result
const EXEC_MS = 60_000;

const string = { type: 'string' };
const tool = (name, description, ...args) => ({
  type: 'function',
  function: {
    name,
    description,
    parameters: {
      type: 'object',
      properties: Object.fromEntries(args.map((arg) => [arg, string])),
      required: args,
      additionalProperties: false,
    },
  },
});
const TOOLS = [
  tool('read', 'Read a text file.', 'path'),
  tool('write', 'Create or replace a text file.', 'path', 'content'),
  tool(
    'edit',
    'Replace oldText, which must occur exactly once in the file, by newText.',
    'path',
    'oldText',
    'newText',
  ),
  tool('exec', 'Run a shell command in the workspace.', 'command'),
];

const run = {
  read: ({ path }) => readFileSync(path, 'utf8'),
  write: ({ path, content }) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return `Wrote ${Buffer.byteLength(content)} bytes to ${path}`;
  },
  edit: ({ path, oldText, newText }) => {
    const pieces = readFileSync(path, 'utf8').split(oldText);
    if (oldText === '' || pieces.length !== 2) {
      throw new Error(`oldText occurs ${oldText === '' ? 0 : pieces.length - 1} times in ${path}, not once`);
    }
    writeFileSync(path, pieces.join(newText));
    return `Edited ${path}`;
  },
  exec: ({ command }) => exec(command),
};

function exec(command) {
  return new Promise((resolve) => {
    // An own process group, so that the time limit ends what the command started as well.
    const child = spawn('/bin/sh', ['-c', command], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (chunk) => (output.length < MAX_RESULT ? (output += chunk) : 0);
    child.stdout.setEncoding('utf8').on('data', collect);
    child.stderr.setEncoding('utf8').on('data', collect);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      process.kill(-child.pid, 'SIGKILL');
    }, EXEC_MS);
    const finish = (code, signal) => {
      clearTimeout(timer);
      // Pipes that a background process still holds would keep this process alive after its last turn.
      child.stdout.destroy();
      child.stderr.destroy();
      const text = output.trimEnd();
      const end = late
        ? `(killed after ${EXEC_MS / 1000} s)`
        : code === 0
          ? ''
          : `(exit code ${code ?? signal})`;
      resolve([text, end].filter(Boolean).join('\n') || '(no output)');
    };
    child.on('error', (error) => finish(error.code));
    child.on('close', finish);
    // 'close' waits for every holder of the pipes, background processes too: give those a moment, no more.
    child.on('exit', (code, signal) => setTimeout(() => finish(code, signal), 200).unref());
  });
}

/** Every failure is a text that the policy reads; none ends the loop. */
async function answer(call) {
  const { name, arguments: raw } = call.function;
  const spec = TOOLS.find((candidate) => candidate.function.name === name);
  if (!spec) return `Error: no tool "${name}"; there are ${TOOLS.map((t) => t.function.name).join(', ')}`;
  try {
    const args = JSON.parse(raw || '{}');
    for (const arg of spec.function.parameters.required) {
      if (typeof args[arg] !== 'string') return `Error: ${name} needs "${arg}", a string`;
    }
    const text = await run[name](args);
    return text.length > MAX_RESULT
      ? `${text.slice(0, MAX_RESULT)}\n(cut at ${MAX_RESULT} characters)`
      : text;
  } catch (error) {
    return `Error: ${error.message}`;
  }
}

function post(body) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${LOOP_KEY}` };
    const sent = request(`${LOOP_BASE_URL}/chat/completions`, { method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (text += chunk));
      response.on('error', reject);
      response.on('end', () =>
        response.complete
          ? resolve({
              status: response.statusCode,
              after: Number(response.headers['retry-after']),
              final: response.headers['x-should-retry'] === 'false',
              text,
            })
          : reject(new Error('the reply was cut off')),
      );
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

/** One model call; the same body again while the model is away or busy. */
async function sample(messages) {
  const body = { model: 'policy', messages, tools: TOOLS };
  for (let attempt = 1; ; attempt++) {
    let problem;
    let wait = Math.min(250 * 2 ** (attempt - 1), 4000);
    try {
      const { status, after, final, text } = await post(body);
      if (status === 200) return JSON.parse(text).choices[0].message;
      problem = `HTTP ${status}: ${text.slice(0, 300)}`;
      if (final || (status < 500 && status !== 429 && status !== 408)) throw new Fatal(problem);
      if (after > 0) wait = Math.min(after * 1000, 30_000);
    } catch (error) {
      if (error instanceof Fatal) throw error;
      problem = error.message;
    }
    log({ type: 'model.error', attempt, problem });
    if (attempt === MAX_ATTEMPTS) throw new Fatal(problem);
    await sleep(wait);
  }
}

class Fatal extends Error {}

function log(entry) {
  if (LOOP_TRANSCRIPT) appendFileSync(LOOP_TRANSCRIPT, JSON.stringify({ time: Date.now(), ...entry }) + '\n');
}

/** A call that the policy misspelt reaches us as text that still starts with the template's mark of a call. */
const isMalformed = (reply) =>
  !reply.tool_calls?.length && (reply.content ?? '').trimStart().startsWith('<call>');

async function main() {
  if (LOOP_TRANSCRIPT) mkdirSync(dirname(LOOP_TRANSCRIPT), { recursive: true });
  const prompt = readFileSync(0, 'utf8');
  const messages = [
    { role: 'system', content: 'Do what the user asks with the tools. Paths are relative to the workspace.' },
    { role: 'user', content: prompt },
  ];
  log({ type: 'session', version: VERSION, messages });
  let calls = 0;
  while (calls < MAX_TURNS) {
    let reply = await sample(messages);
    calls++;
    for (let again = 1; isMalformed(reply) && again <= MAX_RESAMPLES && calls < MAX_TURNS; again++) {
      log({ type: 'discarded', attempt: again, message: reply });
      reply = await sample(messages);
      calls++;
    }
    const { content = '', tool_calls: toolCalls } = reply;
    const message = { role: 'assistant', content, ...(toolCalls?.length && { tool_calls: toolCalls }) };
    messages.push(message);
    log({ type: 'message', message });
    if (!toolCalls?.length) {
      log({ type: 'end', reason: 'final' });
      process.stdout.write(`${content ?? ''}\n`);
      return 0;
    }
    for (const call of toolCalls) {
      const result = { role: 'tool', tool_call_id: call.id, content: await answer(call) };
      messages.push(result);
      log({ type: 'message', message: result });
    }
  }
  log({ type: 'end', reason: 'max-turns' });
  process.stderr.write(`stopped after ${calls} model calls\n`);
  return 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  log({ type: 'end', reason: 'error', problem: error.message });
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
