import { existsSync, readFileSync } from 'node:fs';

/** Nothing counted yet. */
export const noCounts = () => ({ passed: 0, failed: 0, skipped: 0 });

/** Sum of counts. */
export const addCounts = (a, b) => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});

/**
 * Counts of one vitest JSON report. A file that failed without a test of its own (it did not load, or a hook
 * outside any test threw) counts as one failure; so does a report that says "not successful" with no failure in it.
 */
export function vitestCounts(report) {
  const unloaded = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  let failed = report.numFailedTests + unloaded;
  if (failed === 0 && report.success === false) failed = 1;
  return {
    passed: report.numPassedTests,
    failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** Lines of a failure's message that are shown again at the end. */
const MESSAGE_LINES = 12;

/** What failed in a vitest JSON report: `file > test`, with the beginning of what it said. */
export function vitestFailures(report) {
  const told = (name, message) => {
    const lines = (message ?? '').split('\n').slice(0, MESSAGE_LINES);
    return [name, ...lines.map((line) => `  ${line.slice(0, 400)}`)].join('\n').trimEnd();
  };
  return report.testResults.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (failed.length === 0) return status === 'failed' ? [told(name, message)] : [];
    return failed.map((test) => told(`${name} > ${test.fullName}`, test.failureMessages?.[0]));
  });
}

/** Counts and failures of a report file; a missing or unreadable one means that the runner crashed: one failure. */
export function reportCounts(file) {
  if (!existsSync(file))
    return { counts: { passed: 0, failed: 1, skipped: 0 }, problem: `no report ${file}` };
  try {
    const report = JSON.parse(readFileSync(file, 'utf8'));
    return { counts: vitestCounts(report), failures: vitestFailures(report) };
  } catch (error) {
    return {
      counts: { passed: 0, failed: 1, skipped: 0 },
      problem: `unreadable report ${file}: ${error.message}`,
    };
  }
}

/** Counts from the closing lines of a TAP report of node's own test runner; undefined when they are missing. */
export function tapCounts(text) {
  const closing = (name) => {
    const found = text.match(new RegExp(`^# ${name} (\\d+)$`, 'm'));
    return found === null ? undefined : Number(found[1]);
  };
  const [passed, failed, skipped, todo, cancelled] = ['pass', 'fail', 'skipped', 'todo', 'cancelled'].map(
    closing,
  );
  if ([passed, failed, skipped].includes(undefined)) return undefined;
  return { passed, failed: failed + (cancelled ?? 0), skipped: skipped + (todo ?? 0) };
}
