import { read, write } from '../../steps.js';
import { csv, json, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const SENSORS = ['boiler', 'cellar', 'roof', 'stairs'];

/** Readings far from their sensor's median. Dominant mistake: the mean stands for the median. */
export const outliers: SetFamily = {
  name: 'outliers',
  domain: 'analysis',
  level: 'base',
  make(random) {
    // Tenths of a degree throughout, so that "exactly at the limit" is exact.
    const limits = Object.fromEntries(SENSORS.map((name) => [name, 20 + random.below(20)]));
    const readings = random
      .shuffle(
        SENSORS.flatMap((sensor, i) => {
          const base = 150 + random.below(100);
          const limit = limits[sensor]!;
          const spikes =
            i % 2 === 0
              ? [limit + 15 + random.below(60), -limit]
              : [limit + 40 + random.below(60), limit, -limit - 1 - random.below(9), -limit - 12];
          return [
            ...[-6, -3, 0, 3, 6].map((noise) => base + noise + (noise === 0 ? 0 : random.below(3) - 1)),
            ...spikes.map((spike) => base + spike),
            null,
          ].map((value) => ({ sensor, value }));
        }),
      )
      .map((reading, i) => ({
        ...reading,
        time: `2026-02-${String(2 + Math.floor(i / 6)).padStart(2, '0')} ${String(4 * (i % 6)).padStart(2, '0')}:00`,
      }));
    const tenth = (value: number): string => (value / 10).toFixed(1);
    type Options = {
      centre?: (values: number[]) => number;
      far?: (deviation: number, limit: number) => boolean;
    };
    const median = (values: number[]): number => [...values].sort((a, b) => a - b)[(values.length - 1) / 2]!;
    const mean = (values: number[]): number => Math.round(sum(values) / values.length);
    const find = ({ centre = median, far = (d, limit) => Math.abs(d) > limit }: Options = {}): {
      rows: string[][];
      stats: Record<string, { median: number; outliers: number }>;
    } => {
      const used = readings.flatMap((r) => (r.value === null ? [] : [{ ...r, value: r.value }]));
      const centres = Object.fromEntries(
        SENSORS.map((name) => [name, centre(used.filter((r) => r.sensor === name).map((r) => r.value))]),
      );
      const hits = used.filter((r) => far(r.value - centres[r.sensor]!, limits[r.sensor]!));
      return {
        rows: hits.map((r) => [r.time, r.sensor, tenth(r.value), tenth(r.value - centres[r.sensor]!)]),
        stats: Object.fromEntries(
          SENSORS.map((name) => [
            name,
            { median: centres[name]! / 10, outliers: hits.filter((r) => r.sensor === name).length },
          ]),
        ),
      };
    };
    const right = find();
    const header = ['time', 'sensor', 'value', 'deviation'];
    const plan = (found: typeof right): Plan => ({
      steps: [
        read('readings.csv'),
        read('limits.csv'),
        write('outliers.csv', csv(header, found.rows)),
        write('stats.json', json(found.stats)),
      ],
    });
    return {
      files: {
        'readings.csv': csv(
          ['time', 'sensor', 'value'],
          readings.map((r) => [r.time, r.sensor, r.value === null ? '' : tenth(r.value)]),
        ),
        'limits.csv': csv(
          ['sensor', 'limit'],
          SENSORS.map((name) => [name, tenth(limits[name]!)]),
        ),
      },
      query:
        'readings.csv holds temperatures. A reading is an outlier if it differs from the median of all readings of its sensor, upwards or downwards, by more than the limit of the sensor in limits.csv; ' +
        'exactly the limit is no outlier. Rows without a value are ignored everywhere. Write outliers.csv with the header time,sensor,value,deviation (value minus median, 1 decimal) in the order of readings.csv, ' +
        'and stats.json: an object from each sensor to {"median", "outliers": how many}.',
      expected:
        'The agent computes medians by sensor without empty rows, and lists readings beyond the limits with signed deviations.',
      truth: {
        rows: right.rows.map(([time, sensor, value, deviation]) => [
          time,
          sensor,
          Number(value),
          Number(deviation),
        ]),
        stats: right.stats,
      },
      check: `
table = ws.table("outliers.csv")
found = table[1] if table and table[0] == ["time", "sensor", "value", "deviation"] else None
stats = ws.json("stats.json")
wanted = TRUTH["rows"]
return {
    "header": float(found is not None),
    "which": members([row[:3] for row in found or []], [row[:3] for row in wanted]),
    "deviations": members(found, wanted),
    "order": float(found is not None and [row[:2] for row in found] == [row[:2] for row in wanted]),
    "medians": share(close(at(stats, name, "median"), entry["median"]) for name, entry in TRUTH["stats"].items()),
    "counts": share(close(at(stats, name, "outliers"), entry["outliers"]) for name, entry in TRUTH["stats"].items()),
}`,
      reference: plan(right),
      wrong: {
        mean: { why: 'the mean stands for the median', ...plan(find({ centre: mean })) },
        'upwards-only': {
          why: 'only readings above the median are looked at',
          ...plan(find({ far: (d, limit) => d > limit })),
        },
        'at-limit': {
          why: 'readings exactly at the limit are listed',
          ...plan(find({ far: (d, limit) => Math.abs(d) >= limit })),
        },
      },
    };
  },
};
