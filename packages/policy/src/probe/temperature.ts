/** One-token samples at one temperature: how often each id was drawn, and the log-probability reported for it. */
export interface Draws {
  counts: ReadonlyMap<number, number>;
  logprobs: ReadonlyMap<number, number>;
}

export interface TemperatureFindings {
  /** Null: the distribution is too sharp or too flat to tell. */
  logprobs: 'processed' | 'raw' | 'inconsistent' | null;
  /** Null likewise. */
  reached: boolean | null;
}

/** Reported numbers this near are the same: engines differ from themselves by rounding of differently composed batches. */
const SAME = 0.02;

/** Log-likelihood ratio (nats) from which the draws decide: an error in less than one of 1000. */
const DECISIVE = 7;

/**
 * Compares draws at temperature 1 with draws at a low one.
 *
 * Log-probabilities: of two ids, processed ones differ by 1/T times what they differ by at temperature 1, raw ones by just as much.
 * Sampler: the low draws either follow the distribution sharpened by 1/T or still that of temperature 1.
 */
export function compareTemperatures(one: Draws, low: Draws, temperature: number): TemperatureFindings {
  const logprobs = classify(one, low, temperature);
  return { logprobs, reached: reached(one, low, temperature, logprobs) };
}

function classify(one: Draws, low: Draws, temperature: number): TemperatureFindings['logprobs'] {
  const common = [...low.logprobs.keys()].filter((id) => one.logprobs.has(id));
  const at1 = common.map((id) => one.logprobs.get(id)!);
  const atLow = common.map((id) => low.logprobs.get(id)!);
  const [first1, firstLow] = [at1[0], atLow[0]];
  if (first1 === undefined || firstLow === undefined) return null;
  // A certain token has probability 1 at any temperature, and equal ones stay equal.
  if (common.length === 1 && first1 > -SAME) return null;
  if (atLow.every((lp, i) => Math.abs(lp - at1[i]!) < SAME)) {
    const spread = Math.max(...at1) - Math.min(...at1);
    return common.length > 1 && spread * (1 / temperature - 1) < 2 * SAME ? null : 'raw';
  }
  if (common.length === 1) return 'processed';
  const sharpened = atLow.every(
    (lp, i) => Math.abs(lp - firstLow - (at1[i]! - first1) / temperature) < (3 * SAME) / temperature,
  );
  return sharpened ? 'processed' : 'inconsistent';
}

function reached(
  one: Draws,
  low: Draws,
  temperature: number,
  logprobs: TemperatureFindings['logprobs'],
): boolean | null {
  if (logprobs === 'inconsistent') return null;
  // Raw reports say the temperature-1 log-probability of ids that were drawn at the low temperature only, too.
  const known = new Map([...(logprobs === 'raw' ? low.logprobs : []), ...one.logprobs]);
  const log1 = normalised(known);
  const logLow = normalised(new Map([...log1].map(([id, lp]) => [id, lp / temperature])));
  let ratio = 0;
  let power = 0;
  for (const [id, lp] of log1) {
    const count = low.counts.get(id) ?? 0;
    ratio += count * (logLow.get(id)! - lp);
    power += Math.exp(logLow.get(id)!) * (logLow.get(id)! - lp);
  }
  const draws = [...low.counts.values()].reduce((sum, count) => sum + count, 0);
  if (power * draws < DECISIVE) return null;
  return ratio > DECISIVE ? true : ratio < -DECISIVE ? false : null;
}

/** Over the ids that were seen: with top-k there are few, and nearly all come up. */
function normalised(logprobs: ReadonlyMap<number, number>): Map<number, number> {
  const total = Math.log([...logprobs.values()].reduce((sum, lp) => sum + Math.exp(lp), 0));
  return new Map([...logprobs].map(([id, lp]) => [id, lp - total]));
}
