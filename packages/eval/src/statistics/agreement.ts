export interface Agreement {
  /** Things judged at least twice. */
  units: number;
  /** Share of pairs of judgements of one thing that are equal. */
  exact: number | null;
  /** Krippendorff's alpha with squared differences: 1 agreement, 0 as by chance. Null when nothing varies. */
  alpha: number | null;
  /** Mean over pairs of raters of Cohen's kappa with squared weights; null where it is not defined. */
  weightedKappa: number | null;
}

/** Agreement of repeated judgements: `ratings[unit][rater]`, null where one is missing. */
export function agreement(ratings: readonly (readonly (number | null)[])[]): Agreement {
  const units = ratings
    .map((unit) => unit.filter((value) => value !== null))
    .filter((unit) => unit.length >= 2);
  const pairs = units.flatMap((unit) =>
    unit.flatMap((a, i) => unit.slice(i + 1).map((b) => [a, b] as const)),
  );
  return {
    units: units.length,
    exact: pairs.length === 0 ? null : pairs.filter(([a, b]) => a === b).length / pairs.length,
    alpha: krippendorffAlpha(units),
    weightedKappa: meanKappa(ratings),
  };
}

/** Interval data: 1 − observed ÷ expected mean squared difference. */
function krippendorffAlpha(units: readonly (readonly number[])[]): number | null {
  const all = units.flat();
  const n = all.length;
  if (n < 2) return null;
  const squares = (values: readonly number[]): number => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  };
  // The sum of squared differences over ordered pairs is 2·m·Σ(v − mean)².
  const expected = (2 * n * squares(all)) / (n * (n - 1));
  if (expected === 0) return null;
  const observed =
    units.reduce((sum, unit) => sum + (2 * unit.length * squares(unit)) / (unit.length - 1), 0) / n;
  return 1 - observed / expected;
}

function meanKappa(ratings: readonly (readonly (number | null)[])[]): number | null {
  const raters = Math.max(0, ...ratings.map((unit) => unit.length));
  const kappas: number[] = [];
  for (let a = 0; a < raters; a++)
    for (let b = a + 1; b < raters; b++) {
      const pairs = ratings.flatMap((unit) => {
        const [x, y] = [unit[a], unit[b]];
        return x === null || y === null || x === undefined || y === undefined ? [] : [[x, y] as const];
      });
      const kappa = quadraticKappa(pairs);
      if (kappa !== null) kappas.push(kappa);
    }
  return kappas.length === 0 ? null : kappas.reduce((sum, value) => sum + value, 0) / kappas.length;
}

/** 1 − Σ(x − y)² ÷ what independent raters with these marginals would have. */
function quadraticKappa(pairs: readonly (readonly [number, number])[]): number | null {
  const n = pairs.length;
  if (n === 0) return null;
  const observed = pairs.reduce((sum, [x, y]) => sum + (x - y) ** 2, 0) / n;
  let expected = 0;
  for (const [x] of pairs) for (const [, y] of pairs) expected += (x - y) ** 2;
  expected /= n * n;
  return expected === 0 ? null : 1 - observed / expected;
}
