import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { anthropicAnswer, judgeServer, openaiAnswer, type Answer } from '../testing/judge-server.js';
import { codeOf, codeOfAsync, folderOf } from '../testing/tasks.js';
import type { Criterion, Rubric } from '../types.js';
import { JudgeCache } from './cache.js';
import { gatherEvidence } from './evidence.js';
import { HttpJudge } from './http-model.js';
import { Judge, type JudgeOptions } from './judge.js';
import { judgePrompt, type JudgeSlots } from './prompt.js';
import { ScriptedJudge } from './scripted-model.js';

const criterion = (name: string, weight = 1, filePath: string | null = null): Criterion => ({
  name,
  text: `about ${name}`,
  anchors: [0, 0.5, 1],
  weight,
  filePath,
});
const rubric: Rubric = { criteria: [criterion('right', 3), criterion('clear', 1)], source: '', groups: null };
const slots: Omit<JudgeSlots, 'criteria'> = {
  task: 'Do it.',
  expectedBehavior: '',
  outputFiles: [],
  otherFiles: [],
  transcript: null,
};
const request = { tag: 't', rubric, slots, missing: new Set<number>() };
const good = '{"scores": {"criterion_1": 1, "criterion_2": 0.5}, "notes": "n"}';

describe('Judge', () => {
  it('aggregates itself, both ways, and stores both', async () => {
    const grade = (options: JudgeOptions) =>
      new Judge(new ScriptedJudge({ t: [[1, 0.5]] }), options).grade(request);
    expect(await grade({})).toMatchObject({
      score: 0.75,
      mean: 0.75,
      weighted: 0.875,
      error: null,
      attempts: 1,
    });
    expect(await grade({ aggregate: 'rubric_weights' })).toMatchObject({ score: 0.875 });
  });

  it('one at a time, when it is told to: --no-parallel-judge', async () => {
    const most = async (options: JudgeOptions): Promise<number> => {
      let [now, seen] = [0, 0];
      const model = new ScriptedJudge({ t: [good] });
      const ask = model.ask.bind(model);
      model.ask = async (...asked) => {
        seen = Math.max(seen, ++now);
        await new Promise((done) => setImmediate(done));
        now--;
        return ask(...asked);
      };
      const judge = new Judge(model, options);
      await Promise.all([judge.grade(request), judge.grade(request), judge.grade(request)]);
      return seen;
    };
    expect(await most({ oneAtATime: true })).toBe(1);
    expect(await most({})).toBe(3);
  });

  it('asks again, in a fresh context, a bounded number of times', async () => {
    const model = new ScriptedJudge({ t: ['Total: 0.7', '{"score": 1}', good] });
    expect(await new Judge(model).grade(request)).toMatchObject({ score: 0.75, attempts: 3 });
    expect(model.questions[1]!.user.startsWith(model.questions[0]!.user)).toBe(true);
    expect(model.questions[1]!.user).toContain(
      'refused: the judge\'s reply has no JSON object with "scores"',
    );
  });

  it('invalid to the end is not graded, never 0', async () => {
    const grade = await new Judge(new ScriptedJudge({ t: ['{"total": 0.1}'] }), { attempts: 2 }).grade(
      request,
    );
    expect(grade).toMatchObject({
      score: null,
      mean: null,
      attempts: 2,
      error: { code: 'JUDGE_E_CONTRACT' },
    });
  });

  it('a criterion about a missing file scores its lowest anchor without being asked; all missing asks nothing', async () => {
    const model = new ScriptedJudge({ t: [1] });
    const judge = new Judge(model);
    expect(await judge.grade({ ...request, missing: new Set([0]) })).toMatchObject({
      score: 0.5,
      repeats: [[1]],
    });
    expect(model.questions[0]!.user).toContain('criterion_1: clear');
    expect(await judge.grade({ ...request, missing: new Set([0, 1]) })).toMatchObject({
      score: 0,
      attempts: 0,
    });
    expect(model.questions).toHaveLength(1);
  });

  it('all criteria of a group must hold in every repeat (JobBench)', async () => {
    const yes: Criterion = { ...criterion('x'), anchors: [0, 1] };
    const groups = {
      criteria: [yes, yes, yes],
      source: '',
      groups: [
        { weight: 3, criteria: [0, 1] },
        { weight: 1, criteria: [2] },
      ],
    };
    const grade = (replies: number[][], repeats = 1) =>
      new Judge(new ScriptedJudge({ t: replies }), { repeats }).grade({ ...request, rubric: groups });
    expect((await grade([[1, 0, 1]])).score).toBe(0.25);
    expect((await grade([[1, 1, 0]])).score).toBe(0.75);
    expect(
      (
        await grade(
          [
            [1, 1, 1],
            [1, 0, 1],
          ],
          2,
        )
      ).score,
    ).toBe(0.25);
  });

  it('what was judged is not asked again; another question, model or repeat is', async () => {
    const cache = new JudgeCache(folderOf({}));
    const model = new ScriptedJudge({
      t: [
        [1, 0.5],
        [0.5, 0.5],
      ],
    });
    const options = { cache, repeats: 2, price: { input: 1, output: 5 } };
    const first = await new Judge(model, options).grade(request);
    expect(first).toMatchObject({
      cached: 0,
      repeats: [
        [1, 0.5],
        [0.5, 0.5],
      ],
      score: 0.625,
    });
    expect(first.costUsd).toBeGreaterThan(0);
    const again = await new Judge(model, options).grade(request);
    expect(again).toMatchObject({ cached: 2, attempts: 0, costUsd: 0, score: 0.625 });
    expect(model.questions).toHaveLength(2);
    await new Judge(model, options).grade({ ...request, slots: { ...slots, task: 'Other.' } });
    expect(model.questions).toHaveLength(4);
  });

  it('an invalid reply is not kept', async () => {
    const cache = new JudgeCache(folderOf({}));
    await new Judge(new ScriptedJudge({ t: ['no'] }), { cache, attempts: 1 }).grade(request);
    const model = new ScriptedJudge({ t: ['no'] });
    await new Judge(model, { cache, attempts: 1 }).grade(request);
    expect(model.questions).toHaveLength(1);
  });
});

describe('the prompt', () => {
  const file = (path: string, length: number) => ({ path, text: 'x'.repeat(length), why: null });

  it("cuts at the file's and the whole limit, and says so in the prompt and in the record", () => {
    const { user, cuts } = judgePrompt(
      { ...slots, criteria: rubric.criteria, outputFiles: [file('a', 50), file('b', 5), file('c', 50)] },
      { perFile: 20, total: 30 },
    );
    expect(cuts).toEqual([
      { what: 'a', shown: 20, total: 50 },
      { what: 'c', shown: 5, total: 50 },
    ]);
    expect(user).toContain('[cut here: 30 of 50 characters are not shown]');
  });

  it('has the contract’s slots and nothing of ours', () => {
    const { system, user } = judgePrompt(
      { ...slots, expectedBehavior: 'E', transcript: 'T', criteria: rubric.criteria },
      { perFile: 9, total: 9 },
    );
    expect([...user.matchAll(/^<([A-Z_]+)>$/gm)].map(([, name]) => name)).toEqual([
      ...[
        'USER_TASK',
        'EXPECTED_BEHAVIOR',
        'FINAL_OUTPUT_FILES',
        'ADDITIONAL_CHANGED_WORKSPACE_FILES',
        'TRANSCRIPT_OPTIONAL',
        'RUBRIC',
      ],
    ]);
    expect(`${system}${user}`.toLowerCase()).not.toContain('treeward');
    expect(user).toContain('criterion_1: right\nallowed scores: 0, 0.5, 1\nabout right');
  });

  it('shows changed files; links, caches and what was there before are left out', async () => {
    const secret = join(mkdtempSync(join(tmpdir(), 'secret-')), 'key');
    writeFileSync(secret, 'top secret');
    const inputs = folderOf({ 'in.txt': 'same', 'old.txt': 'old' });
    const workspace = folderOf({
      'in.txt': 'same',
      'old.txt': 'new',
      'out/report.md': 'r',
      '.git/config': 'x',
      'bin.dat': new Uint8Array([1, 0, 2]),
    });
    symlinkSync(secret, join(workspace, 'link.txt'));
    symlinkSync(secret, join(workspace, 'target.md'));
    const all = await gatherEvidence(workspace, inputs, { ...rubric });
    expect(all.outputFiles.map(({ path, text, why }) => [path, text ?? why])).toEqual([
      ['bin.dat', 'binary'],
      ['old.txt', 'new'],
      ['out/report.md', 'r'],
    ]);
    const targeted = await gatherEvidence(workspace, inputs, {
      ...rubric,
      criteria: [
        criterion('a', 1, 'out/report.md'),
        criterion('b', 1, 'target.md'),
        criterion('c', 1, '../../etc/passwd'),
      ],
    });
    expect([...targeted.missing]).toEqual([1, 2]);
    expect(targeted.outputFiles.map(({ path }) => path)).toEqual(['out/report.md']);
    expect(targeted.otherFiles.map(({ path }) => path)).toEqual(['bin.dat', 'old.txt']);
  });
});

describe('HttpJudge against a server on this machine', () => {
  let close: (() => Promise<void>) | null = null;
  afterEach(async () => {
    await close?.();
    close = null;
  });
  const serve = async (...answers: Answer[]) => {
    const server = await judgeServer(answers);
    close = server.close;
    return server;
  };
  const options = { model: 'm', pauseMs: 1, retries: 2 } as const;

  it('OpenAI-compatible: one request, no tools, temperature 0; the cost is counted', async () => {
    process.env['EVAL_TEST_KEY'] = 'k-1';
    const { url, seen } = await serve(openaiAnswer(`ok ${good}`));
    const model = new HttpJudge({
      ...options,
      dialect: 'openai',
      baseUrl: `${url}/v1/`,
      apiKeyEnv: 'EVAL_TEST_KEY',
    });
    const grade = await new Judge(model, { price: { input: 1, output: 5 } }).grade(request);
    expect(grade).toMatchObject({ score: 0.75, inputTokens: 1000, outputTokens: 100, costUsd: 0.0015 });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      url: '/v1/chat/completions',
      headers: { authorization: 'Bearer k-1' },
      body: { model: 'm', temperature: 0, max_tokens: 2048 },
    });
    expect(Object.keys(seen[0]!.body).sort()).toEqual(['max_tokens', 'messages', 'model', 'temperature']);
    expect(model.name).not.toContain('k-1');
  });

  it('Anthropic: system apart, version and key as headers', async () => {
    process.env['EVAL_TEST_KEY'] = 'k-1';
    const { url, seen } = await serve(anthropicAnswer(good));
    const model = new HttpJudge({
      ...options,
      dialect: 'anthropic',
      baseUrl: `${url}/v1`,
      apiKeyEnv: 'EVAL_TEST_KEY',
    });
    expect((await new Judge(model).grade(request)).score).toBe(0.75);
    expect(seen[0]).toMatchObject({
      url: '/v1/messages',
      headers: { 'x-api-key': 'k-1', 'anthropic-version': '2023-06-01' },
    });
    expect(seen[0]!.body['messages']).toHaveLength(1);
  });

  it('tries again after 429, 503 and a broken body, not after 400', async () => {
    const { url, seen } = await serve({ status: 429, body: {} }, { text: '<html>' }, openaiAnswer(good));
    const judge = new Judge(new HttpJudge({ ...options, dialect: 'openai', baseUrl: url }));
    expect((await judge.grade(request)).score).toBe(0.75);
    expect(seen).toHaveLength(3);
    await close?.();
    const bad = await serve({ status: 400, body: { error: 'too long' } });
    const grade = await new Judge(new HttpJudge({ ...options, dialect: 'openai', baseUrl: bad.url })).grade(
      request,
    );
    expect(grade).toMatchObject({ score: null, error: { code: 'JUDGE_E_HTTP' } });
    expect(bad.seen).toHaveLength(1);
  });

  it.each([
    ['no text', { body: { choices: [{ message: { content: null } }] } }, 'JUDGE_E_REPLY'],
    ['a refused key', { status: 401, body: {} }, 'JUDGE_E_AUTH'],
    ['silence', { hang: true }, 'JUDGE_E_TIMEOUT'],
  ])('%s is not graded', async (_, answer, code) => {
    const { url } = await serve(answer);
    const model = new HttpJudge({ ...options, retries: 0, dialect: 'openai', baseUrl: url, timeoutMs: 300 });
    expect((await new Judge(model).grade(request)).error?.code).toBe(code);
  });

  it('nobody there is JUDGE_E_UNREACHABLE; a key that is not set is said before anything is asked', async () => {
    const model = new HttpJudge({ ...options, retries: 0, dialect: 'openai', baseUrl: 'http://127.0.0.1:9' });
    expect(
      await codeOfAsync(() => model.ask({ system: '', user: '', temperature: 0, maxTokens: 1, tag: '' })),
    ).toBe('JUDGE_E_UNREACHABLE');
    expect(
      codeOf(() => new HttpJudge({ ...options, dialect: 'openai', apiKeyEnv: 'EVAL_TEST_NOT_SET' })),
    ).toBe('JUDGE_E_CONFIG');
  });
});
