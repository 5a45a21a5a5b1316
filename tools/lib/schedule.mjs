/**
 * Runs steps as soon as those they need are done, a few at a time. Each step: `{id, title, needs, run}`.
 * A failed step stops only those that need it: whatever else could be installed is there at the next try.
 * Resolves with one record per step, in the order given: `{id, title, status, seconds, detail?, error?}`.
 */
export async function schedule(
  steps,
  { limit = 3, onStart = () => {}, onEnd = () => {}, now = () => performance.now() },
) {
  const records = new Map();
  const running = new Map();
  const waiting = [...steps];
  const end = (step, record) => {
    records.set(step.id, { id: step.id, title: step.title, ...record });
    onEnd(step, records.get(step.id));
  };
  const known = new Set(steps.map((step) => step.id));
  const needsOf = (step) => (step.needs ?? []).filter((id) => known.has(id));
  for (;;) {
    for (const step of [...waiting]) {
      const needs = needsOf(step).map((id) => records.get(id));
      const blocked = needs.find((record) => record?.status === 'failed' || record?.status === 'blocked');
      if (blocked !== undefined) {
        waiting.splice(waiting.indexOf(step), 1);
        end(step, { status: 'blocked', seconds: 0, detail: `not tried: ${blocked.title} is missing` });
      } else if (running.size < limit && needs.every((record) => record !== undefined)) {
        waiting.splice(waiting.indexOf(step), 1);
        onStart(step);
        const started = now();
        const seconds = () => Math.round((now() - started) / 100) / 10;
        const done = Promise.resolve()
          .then(() => step.run())
          .then(
            (result) => ({ status: 'done', ...result, seconds: seconds() }),
            (error) => ({ status: 'failed', error, seconds: seconds() }),
          )
          .then((record) => {
            running.delete(step.id);
            end(step, record);
          });
        running.set(step.id, done);
      }
    }
    if (running.size > 0) await Promise.race(running.values());
    else if (waiting.length === 0) return steps.map((step) => records.get(step.id));
    else if (!waiting.some((step) => needsOf(step).every((id) => records.has(id)))) {
      throw new Error(`steps need each other in a circle: ${waiting.map((step) => step.id).join(', ')}`);
    }
  }
}
