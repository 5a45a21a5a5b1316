import type { StopSignals } from './train-loop.js';

/** Ctrl-C once: finish the step and save. Twice: give the step up (sandboxes destroyed). Three times: end at once. */
export function stopSignals(say: (text: string) => void): StopSignals & { dispose(): void } {
  const afterStep = new AbortController();
  const now = new AbortController();
  let count = 0;
  const onSignal = (): void => {
    count++;
    if (count === 1) {
      say('stopping after this step (Ctrl-C again gives the step up)');
      afterStep.abort();
    } else if (count === 2) {
      say('giving the step up; finished steps are saved');
      now.abort();
    } else process.exit(130);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    afterStep: afterStep.signal,
    now: now.signal,
    dispose: () => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}
