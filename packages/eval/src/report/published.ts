/** A row of the ClawGym II paper's Table 1 (arXiv 2608.16798v1), in percent; null: not given there or not noted. */
export interface PublishedRow {
  harness: string;
  model: string;
  pinchbench: number | null;
  /** In the order of DOMAINS. */
  domains: (number | null)[];
  average: number;
}

const row = (
  harness: string,
  model: string,
  pinchbench: number | null,
  average: number,
  ...domains: number[]
): PublishedRow => ({
  harness,
  model,
  pinchbench,
  domains: domains.length === 6 ? domains : Array.from({ length: 6 }, () => null),
  average,
});

export const PUBLISHED: readonly PublishedRow[] = [
  row('OpenClaw', 'Qwen3-8B', 54.5, 35.02, 37.46, 29.06, 30.4, 41.12, 44.47, 30.69),
  row('OpenClaw', 'Qwen3-32B', 49.4, 40.32, 40.68, 36.21, 37.84, 47.16, 49.29, 33.11),
  row('OpenClaw', 'Qwen3-30A3B', 55.6, 45.11, 42.47, 42.09, 45.04, 51.95, 45.98, 46.24),
  row('OpenClaw', 'Qwen3-235A23B', 60.6, 54.48, 53.66, 52.27, 47.18, 61.39, 67.33, 49.23),
  row('OpenClaw', 'ClawGym-8B', 75.7, 50.24, 49.47, 46.83, 46.35, 55.37, 52.29, 54.78),
  row('OpenClaw', 'ClawGym-30A3B', 86, 56.82, 52.98, 50.97, 64.64, 61.46, 57.9, 56.13),
  row('OpenClaw', 'ClawII-Cold-8B', 71.29, 47.06),
  row('OpenClaw', 'ClawII-Cold-30A3B', 75.61, 52.64, 54.34, 47.61, 52.58, 53.42, 60.64, 48.88),
  row('OpenClaw', 'ClawII-OC-8B', 77.44, 54.98),
  row('OpenClaw', 'ClawII-OC-30A3B', 87.32, 62.62, 62.75, 59.81, 64.09, 62.18, 63.12, 66.71),
  row('Claude Code', 'Qwen3-8B', 27.4, 18.54),
  row('Claude Code', 'Qwen3-32B', 53.27, 29.37),
  row('Claude Code', 'Qwen3-30A3B', 54.14, 37.06, 38.75, 33.06, 32.99, 45.43, 41.62, 32.26),
  row('Claude Code', 'Qwen3-235A23B', 62.47, 45.59),
  row('Claude Code', 'ClawII-CC-8B', 61.21, 42.05),
  row('Claude Code', 'ClawII-CC-30A3B', 71.42, 51.87, 47.84, 45.59, 48.88, 57.05, 56.93, 62.93),
];
