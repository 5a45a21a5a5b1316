import { edit, exec, read, write } from '../../steps.js';
import { csv, json, lines, sum } from '../text.js';
import { RUN_PYTHON } from '../run-python.js';
import type { Plan, SetFamily } from '../set-task.js';

const REGIONS = ['East', 'North', 'South', 'West'];

/** A data pipeline with bugs in three files: repair it, run it. Dominant mistake: it runs, but a source is still left out. */
export const fixPipeline: SetFamily = {
  name: 'fix-pipeline',
  domain: 'software',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const [oldLeast, least] = [5, 20 + 5 * random.below(4)];
    let number = 500;
    const sources = ['alpha', 'bravo', 'coast'].map((name, s) => ({
      name,
      rows: Array.from({ length: 8 }, (_, i) => {
        const cents = i === 3 ? 100 * oldLeast + 250 : 100 * least + 100_000 * (i % 2) + random.below(90_000);
        const region = REGIONS[(i + s) % 4]!;
        return { id: `R${++number}`, region: i % 3 === 1 ? region.toUpperCase() : region, cents };
      }),
    }));
    // A correction in the last source: the same id again with another amount; one region without a name.
    sources[2]!.rows.push({ ...sources[0]!.rows[5]!, cents: 777_700 + random.below(900) });
    sources[1]!.rows[6]!.region = '';
    const shown = (cents: number, comma: boolean): string => {
      const [whole, part] = (cents / 100).toFixed(2).split('.') as [string, string];
      return comma ? `${whole.replace(/\B(?=(\d{3})+$)/g, '.')},${part}` : `${whole}.${part}`;
    };
    const run = (which = sources, minimum = least) => {
      const byId = new Map(which.flatMap(({ rows }) => rows.map((row) => [row.id, row] as const)));
      const rejected = [...byId.values()]
        .filter((r) => r.region === '' || r.cents < 100 * minimum)
        .map((r) => r.id)
        .sort();
      const good = [...byId.values()].filter((r) => !rejected.includes(r.id));
      const totals = REGIONS.map((region) => {
        const own = good.filter((r) => r.region.toLowerCase() === region.toLowerCase());
        return [region, own.length, sum(own.map((r) => r.cents))] as [string, number, number];
      }).sort((a, b) => b[2] - a[2]);
      return { rejected, totals };
    };
    type Fixed = { comma?: boolean; last?: boolean; region?: boolean; all?: boolean };
    const read_ = (f: Fixed): string =>
      lines(
        '"""Reading: amounts in cents, the last row of an id."""',
        '',
        '',
        'def parse_amount(text):',
        ...(f.comma
          ? ['    if "," in text:', '        text = text.replace(".", "").replace(",", ".")']
          : ['    text = text.replace(",", "")']),
        '    return round(float(text) * 100)',
        '',
        '',
        'def latest(rows):',
        '    found = {}',
        '    for row in rows:',
        ...(f.last ? ['        found[row["id"]] = row'] : ['        found.setdefault(row["id"], row)']),
        '    return list(found.values())',
      );
    const total_ = (f: Fixed): string =>
      lines(
        '"""Totals by region."""',
        '',
        '',
        'def totals(rows):',
        '    found = {}',
        '    for row in rows:',
        f.region ? '        region = row["region"].capitalize()' : '        region = row["region"]',
        '        count, cents = found.get(region, (0, 0))',
        '        found[region] = (count + 1, cents + row["cents"])',
        '    result = [[region, count, cents] for region, (count, cents) in found.items()]',
        f.region
          ? '    return sorted(result, key=lambda row: (-row[2], row[0]))'
          : '    return sorted(result, key=lambda row: row[2])',
      );
    const main_ = (f: Fixed): string =>
      lines(
        'import csv, glob, json, os, sys',
        '',
        'sys.path.insert(0, "pipeline")',
        'from reading import latest, parse_amount',
        'from totals import totals',
        '',
        'least = json.load(open("config.json"))["least"] * 100',
        'rows = []',
        f.all
          ? 'for path in sorted(glob.glob("data/*.csv")):'
          : 'for path in sorted(glob.glob("data/*.csv"))[:-1]:',
        '    for row in csv.DictReader(open(path)):',
        '        rows.append({"id": row["id"], "region": row["region"], "cents": parse_amount(row["amount"])})',
        'rows = latest(rows)',
        'good = [row for row in rows if row["region"] and row["cents"] >= least]',
        'os.makedirs("out", exist_ok=True)',
        'with open("out/totals.csv", "w") as file:',
        '    file.write("region,count,total\\n")',
        '    for region, count, cents in totals(good):',
        '        file.write("%s,%d,%.2f\\n" % (region, count, cents / 100))',
        'with open("out/rejected.txt", "w") as file:',
        '    file.write("".join(row["id"] + "\\n" for row in sorted(rows, key=lambda row: row["id"]) if row not in good))',
      );
    const files = {
      ...Object.fromEntries(
        sources.map(({ name, rows }, s) => [
          `data/${name}.csv`,
          csv(
            ['id', 'region', 'amount'],
            rows.map((r, i) => [r.id, r.region, shown(r.cents, (i + s) % 3 === 0)]),
          ),
        ]),
      ),
      'pipeline/reading.py': read_({}),
      'pipeline/totals.py': total_({}),
      'run.py': main_({}),
      'config.json': json({ least: oldLeast }),
      'notes/2026-01.md': lines('# Notes', '', `- Rows below ${oldLeast} are rejected (config.json).`),
      'notes/2026-04.md': lines(
        '# Notes',
        '',
        `- From now on rows below ${least} are rejected; config.json is not changed yet.`,
      ),
      'SPEC.md': lines(
        '# Pipeline',
        '',
        '- run.py reads every file of data/, in the order of names, and writes out/totals.csv and out/rejected.txt.',
        '- parse_amount(text) gives cents as an integer. Amounts are written like 1234.50 or like 1.234,50.',
        '- latest(rows) keeps the last row of each id, in the order in which the ids first occur.',
        '- Rows without a region or below the least amount ("least" in config.json, as the newest note says) are rejected; rejected.txt lists their ids, sorted.',
        '- totals(rows) gives [region, count, cents] for each region, largest total first, equal totals by name. Regions are compared without regard to capitals and written like "North".',
      ),
    };
    const right = run();
    const fixed: Fixed = { comma: true, last: true, region: true, all: true };
    const plan = (f: Fixed, minimum: number, result = run()): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        write('pipeline/reading.py', read_(f)),
        write('pipeline/totals.py', total_(f)),
        ...(f.all
          ? [
              edit(
                'run.py',
                'for path in sorted(glob.glob("data/*.csv"))[:-1]:',
                'for path in sorted(glob.glob("data/*.csv")):',
              ),
            ]
          : []),
        ...(minimum === oldLeast ? [] : [write('config.json', json({ least: minimum }))]),
        exec('python3 -B run.py'),
        read('out/totals.csv'),
        write(
          'summary.json',
          json({
            top_region: result.totals[0]![0],
            total: sum(result.totals.map((row) => row[2])) / 100,
            rejected: result.rejected.length,
          }),
        ),
      ],
    });
    const row = (id: string, region: string, cents: number): object => ({ id, region, cents });
    const cases = {
      parse_amount: [
        ['12.50', 1250],
        ['1.234,50', 123_450],
        ['7', 700],
        ['0,05', 5],
        ['1.000.000,00', 100_000_000],
      ].map(([text, cents]) => [[text], cents]),
      latest: [
        [[[row('a', 'x', 1), row('b', 'y', 2), row('a', 'z', 3)]], [row('a', 'z', 3), row('b', 'y', 2)]],
        [[[]], []],
      ],
      totals: [
        [
          [[row('a', 'NORTH', 5), row('b', 'north', 6), row('c', 'West', 90)]],
          [
            ['West', 1, 90],
            ['North', 2, 11],
          ],
        ],
        [
          [[row('a', 'South', 5), row('b', 'east', 5)]],
          [
            ['East', 1, 5],
            ['South', 1, 5],
          ],
        ],
      ],
    };
    return {
      files,
      query:
        'The pipeline (run.py and pipeline/) does not do what SPEC.md says. Repair the code and config.json, keep the names and arguments of the functions, leave data/ as it is, and run it with python3 run.py so that out/totals.csv (header region,count,total; total in whole units with 2 decimals) ' +
        'and out/rejected.txt are right. Then write summary.json from its output: {"top_region": region of the largest total, "total": sum of all totals, "rejected": number of rejected rows}.',
      expected:
        'The agent repairs amounts, repeated ids, regions, sorting and the skipped source, applies the newer limit, runs the pipeline and summarises its output.',
      truth: {
        cases,
        totals: right.totals.map(([region, count, cents]) => [region, count, cents / 100]),
        rejected: right.rejected,
        least,
        data: Object.fromEntries(Object.entries(files).filter(([path]) => path.startsWith('data/'))),
      },
      check: `${RUN_PYTHON}
homes = {"parse_amount": "reading", "latest": "reading", "totals": "totals"}
scores = {}
for name, cases in TRUTH["cases"].items():
    results = call(ws, "pipeline/%s.py" % homes[name], name, [arguments for arguments, _ in cases])
    scores[name] = float(all(same(result, wanted) for result, (_, wanted) in zip(results, cases)))
table = ws.table("out/totals.csv")
rows = table[1] if table and table[0] == ["region", "count", "total"] else None
summary = ws.json("summary.json")
wanted = TRUTH["totals"]
totals = [number(row[2]) for row in rows or []]
scores["config"] = float(close(at(ws.json("config.json"), "least"), TRUTH["least"]))
scores["totals_file"] = members(rows, wanted)
scores["totals_order"] = float(same(rows, wanted))
scores["rejected"] = float(ws.lines("out/rejected.txt") == TRUTH["rejected"])
scores["summary"] = float(same(summary, {"top_region": wanted[0][0], "total": sum(row[2] for row in wanted), "rejected": len(TRUTH["rejected"])}))
scores["agree"] = float(bool(totals) and None not in totals and close(at(summary, "total"), sum(totals), 0.02) and at(summary, "top_region") == rows[0][0])
scores["data_kept"] = float(rows is not None and all(ws.text(path) == text for path, text in TRUTH["data"].items()))
return scores`,
      reference: plan(fixed, least),
      wrong: {
        'source-left-out': {
          why: 'the last source is still left out',
          ...plan({ ...fixed, all: false }, least, run(sources.slice(0, 2))),
        },
        'old-limit': {
          why: 'the limit of the older note stays',
          ...plan(fixed, oldLeast, run(sources, oldLeast)),
        },
        'first-row-kept': {
          why: 'of a repeated id the first row is kept',
          ...plan({ ...fixed, last: false }, least),
        },
        'output-only': {
          why: 'the outputs are written by hand, the code stays broken',
          steps: [
            ...Object.keys(files).map(read),
            write(
              'out/totals.csv',
              csv(
                ['region', 'count', 'total'],
                right.totals.map(([a, b, c]) => [a, b, (c / 100).toFixed(2)]),
              ),
            ),
            write('out/rejected.txt', lines(...right.rejected)),
          ],
        },
      },
    };
  },
};
