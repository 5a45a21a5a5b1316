import { describeError } from './errors.mjs';

const MARKS = {
  done: 'done',
  ready: 'already there',
  adopted: 'adopted',
  skipped: 'skipped',
  failed: 'FAILED',
  blocked: 'not tried',
};

/** Progress lines on stderr: what each step does when it starts, how long it took when it ends. */
export function progressPrinter(write = (line) => process.stderr.write(`${line}\n`)) {
  const startedAt = performance.now();
  const clock = () => `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s`;
  return {
    say: (title, text) => write(`[setup ${clock()}] ${title}: ${text}`),
    end(record) {
      if (record.status === 'ready') return;
      const detail = record.detail === undefined ? '' : ` (${record.detail})`;
      write(
        `[setup ${clock()}] ${record.title}: ${MARKS[record.status]} in ${record.seconds.toFixed(1)} s${detail}`,
      );
      if (record.error !== undefined) write(describeError(record.error));
    },
  };
}

/** How this run of the setup went: how long it took, step by step, and with what versions. */
export function setupReport(records, { pins, totalSeconds, startedAt, cache }) {
  return {
    startedAt,
    totalSeconds,
    ok: records.every((record) => record.status !== 'failed' && record.status !== 'blocked'),
    cache,
    versions: {
      node: process.versions.node,
      tensorflow: pins.tensorflow.version,
      harnesses: Object.fromEntries(Object.entries(pins.harnesses).map(([name, pin]) => [name, pin.version])),
    },
    steps: records.map(({ id, title, status, seconds, detail, error }) => ({
      id,
      title,
      status,
      seconds,
      startedAt,
      ...(detail === undefined ? {} : { detail }),
      ...(error === undefined
        ? {}
        : { error: { code: error.code ?? 'BOOT_E_UNEXPECTED', message: error.message } }),
    })),
  };
}

/**
 * What `.treeward-setup.json` holds: the latest run, but for a step that found everything in place (or was not
 * part of it) the record of the run that did the work.
 */
export function withEarlierWork(report, earlier) {
  const steps = new Map((earlier?.steps ?? []).map((step) => [step.id, step]));
  for (const step of report.steps) {
    if (step.status !== 'ready' || !steps.has(step.id)) steps.set(step.id, step);
  }
  return { ...report, steps: [...steps.values()] };
}
