import { pino, type Logger } from 'pino';
import type { RunFolder } from '@treeward/base';

/** `log.ndjson`: what happened in a run, for looking back; no prompts. Written at once, so that a killed run has it. */
export function openLog(run: RunFolder): Logger {
  return pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: run.log, sync: true, mkdir: true }),
  );
}
