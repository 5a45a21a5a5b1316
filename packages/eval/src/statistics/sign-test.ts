export interface SignTest {
  wins: number;
  losses: number;
  ties: number;
  /** Two-sided, exact; ties are left out. 1 when there is nothing but ties. */
  p: number;
}

const TIE = 1e-9;

/** Exact sign test on pairs (a, b): a win is b > a. */
export function signTest(pairs: readonly (readonly [number, number])[]): SignTest {
  const wins = pairs.filter(([a, b]) => b - a > TIE).length;
  const losses = pairs.filter(([a, b]) => a - b > TIE).length;
  const n = wins + losses;
  const tail = Math.min(wins, losses);
  let term = -n * Math.LN2; // log of C(n,0) ÷ 2^n
  let sum = 0;
  for (let k = 0; k <= tail; k++) {
    sum += Math.exp(term);
    term += Math.log(n - k) - Math.log(k + 1);
  }
  return { wins, losses, ties: pairs.length - n, p: n === 0 ? 1 : Math.min(1, 2 * sum) };
}
