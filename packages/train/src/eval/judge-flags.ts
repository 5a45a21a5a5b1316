import { join, resolve } from 'node:path';
import { readJson, TreewardError } from '@treeward/base';
import {
  HttpJudge,
  Judge,
  JudgeCache,
  ScriptedJudge,
  type JudgeModel,
  type Price,
  type ScriptedReply,
} from '@treeward/eval';
import { numberFlag } from '../cli/number-flag.js';

export interface JudgeFlags {
  judge?: string;
  judgeAttempts: string;
  judgeRepeats: string;
  judgeAggregate: 'mean' | 'rubric_weights';
  judgePrice?: string;
  judgeFileLimit: string;
  judgeCache: boolean;
  parallelJudge: boolean;
}

/** `1/5`: dollars per million tokens in and out. @throws TreewardError CLI_E_NUMBER */
export function priceFlag(flag: string, text: string | undefined): Price | null {
  if (text === undefined) return null;
  const [input, output] = text.split('/');
  return {
    input: numberFlag(flag, input ?? '', { min: 0 }),
    output: numberFlag(flag, output ?? '', { min: 0 }),
  };
}

/** The judge that the flags describe; null without `--judge`. @throws TreewardError CLI_E_JUDGE, JUDGE_E_CONFIG */
export function judgeOf(flags: JudgeFlags, out: string): Judge | null {
  if (flags.judge === undefined) return null;
  const perFile = numberFlag('--judge-file-limit', flags.judgeFileLimit, { min: 1, integer: true });
  return new Judge(modelOf(flags.judge), {
    ...(flags.judgeCache && { cache: new JudgeCache(join(out, 'judge-cache')) }),
    attempts: numberFlag('--judge-attempts', flags.judgeAttempts, { min: 1, integer: true }),
    repeats: numberFlag('--judge-repeats', flags.judgeRepeats, { min: 1, integer: true }),
    aggregate: flags.judgeAggregate,
    price: priceFlag('--judge-price', flags.judgePrice),
    limits: { perFile, total: 200_000 },
    oneAtATime: !flags.parallelJudge,
  });
}

function modelOf(spec: string): JudgeModel {
  const [, kind, rest] = /^(openai|anthropic|scripted):(.+)$/.exec(spec) ?? [];
  if (kind === 'scripted') {
    return new ScriptedJudge(readJson<Record<string, readonly ScriptedReply[]>>(resolve(rest!)));
  }
  const [, model, baseUrl] = /^(.+?)(?:@(https?:\/\/.+))?$/.exec(rest ?? '') ?? [];
  if ((kind === 'openai' || kind === 'anthropic') && model !== undefined) {
    const variable = kind === 'openai' ? 'OPENAI_API_KEY' : 'ANTHROPIC_API_KEY';
    // A server of one's own needs no key; the vendor's does, and its absence is said before anything runs.
    const keyless = baseUrl !== undefined && process.env[variable] === undefined;
    return new HttpJudge({
      dialect: kind,
      model,
      ...(baseUrl !== undefined && { baseUrl }),
      ...(!keyless && { apiKeyEnv: variable }),
    });
  }
  throw new TreewardError('CLI_E_JUDGE', `--judge ${spec}: not known`, {
    hints: ['openai:<model>[@<base URL>]', 'anthropic:<model>[@<base URL>]', 'scripted:<file.json>'],
  });
}
