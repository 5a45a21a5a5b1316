import { describe, expect, it } from 'vitest';
import { DOMAINS } from '../formats/domains.js';
import { summaryOf } from '../testing/summaries.js';
import { codeOf } from '../testing/tasks.js';
import { compareEvaluations } from './comparison.js';
import { describeComparison } from './describe-comparison.js';
import { describeEvaluation } from './describe.js';
import { domainTable } from './domain-table.js';
import { comparisonHtml } from './html.js';
import { PUBLISHED } from './published.js';
import { comparisonSvg } from './svg.js';

const domains = DOMAINS.map(({ name }, at) => ({ id: `t${at}`, category: name, scores: [at / 10, at / 10] }));

describe('the table in the paper’s layout', () => {
  it('joins ClawGym-Bench and PinchBench of one policy, beside the published rows', () => {
    const rows = domainTable([
      summaryOf(domains, { identity: { label: 'rl', harness: 'openclaw' } }),
      summaryOf([{ id: 'p', scores: [0.9, 0.9] }], {
        identity: { label: 'rl', harness: 'openclaw', format: 'pinchbench' },
      }),
      summaryOf(domains, { identity: { label: 'sft', harness: 'openclaw' }, complete: false }),
    ]);
    expect(rows[0]).toEqual({
      harness: 'openclaw',
      model: 'rl',
      cells: [90, 0, 10, 20, 30, 40, 50, 25],
      source: 'measured',
      sets: ['t (6)', 't (1)'],
    });
    expect(rows[1]).toMatchObject({ model: 'sft', source: 'partial' });
    expect(rows.filter(({ source }) => source === 'published')).toHaveLength(PUBLISHED.length);
    expect(rows.find(({ model }) => model === 'ClawII-OC-30A3B')!.cells).toEqual([
      87.32, 62.75, 59.81, 64.09, 62.18, 63.12, 66.71, 62.62,
    ]);
  });

  it('the published averages are the domains’ averages, weighted by their tasks', () => {
    const tasks = DOMAINS.reduce((sum, domain) => sum + domain.tasks, 0);
    expect(tasks).toBe(200);
    for (const row of PUBLISHED) {
      if (row.domains.some((value) => value === null)) continue;
      const weighted =
        row.domains.reduce<number>((sum, value, at) => sum + value! * DOMAINS[at]!.tasks, 0) / tasks;
      expect(Math.abs(weighted - row.average), `${row.harness} ${row.model}`).toBeLessThan(1.1);
    }
  });
});

describe('compare', () => {
  const base = summaryOf([
    { id: 'a', scores: [0, 0] },
    { id: 'b', scores: [0.5, 0.5] },
  ]);
  const better = summaryOf(
    [
      { id: 'a', scores: [1, 1] },
      { id: 'b', scores: [0.5, 1] },
    ],
    { identity: { label: 'rl <b>"x"</b>' } },
  );
  const other = summaryOf([{ id: 'a', scores: [1] }], { identity: { label: 'rl', harness: 'codex' } });

  it('sets each against the first of its harness, on the tasks of both', () => {
    const { rows, warnings } = compareEvaluations([base, better, other]);
    expect(rows[0]!.against).toBeNull();
    expect(rows[1]!.against).toMatchObject({
      name: 'base · agent-loop',
      paired: { tasks: 2, sign: { wins: 2, losses: 0 } },
    });
    expect(rows[1]!.against!.paired.difference!.estimate).toBeCloseTo(0.625, 12);
    expect(warnings.join('\n')).toContain('rl · codex · clawgym: only 1 tasks have a number in both');
    expect(codeOf(() => compareEvaluations([]))).toBe('RUN_E_COMPARE');
  });

  it('two sets of one format are named apart and not set against each other', () => {
    const hard = summaryOf([{ id: 'z', scores: [1, 1] }], { identity: { tasks: '/sets/hard' } });
    const { rows, domains } = compareEvaluations([base, better, hard]);
    expect(rows.map(({ name }) => name)).toEqual([
      'base · agent-loop · clawgym · t',
      'rl <b>"x"</b> · agent-loop · clawgym',
      'base · agent-loop · clawgym · hard',
    ]);
    expect(rows[2]!.against).toBeNull();
    expect(domains.filter(({ model }) => model === 'base').map(({ sets }) => sets)).toEqual([
      ['t (2)'],
      ['hard (1)'],
    ]);
  });

  it('says once that runs are single', () => {
    const single = summaryOf([{ id: 'a', scores: [1] }]);
    expect(compareEvaluations([single, other]).warnings.join()).toMatch(/one run per task: .*\(all\)/);
    expect(compareEvaluations([base, other]).warnings.join()).toMatch(/one run .*\(rl · codex · clawgym\)/);
  });

  it('is one table with intervals; the paper’s rows are labelled', () => {
    const text = describeComparison(compareEvaluations([base, better]));
    expect(text).toMatch(/base · agent-loop · clawgym\s+2\s+2\s+0\.250 \[/);
    expect(text).toContain('+0.625 [');
    expect(text).toContain('published: ClawGym II');
  });

  it('is a picture and a page that need nothing from elsewhere and escape what they show', () => {
    const comparison = compareEvaluations([
      base,
      better,
      summaryOf([{ id: 'a', scores: [null] }], { identity: { label: 'none' } }),
    ]);
    const svg = comparisonSvg(comparison);
    const html = comparisonHtml(comparison);
    expect(svg.match(/<circle/g)).toHaveLength(2);
    expect(svg).toContain('not graded');
    for (const page of [svg, html]) {
      expect(page).not.toContain('<b>');
      expect(page.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/\b(?:src|href)=|https?:|<script/);
    }
    expect(html).toContain('class="published"');
  });

  it('a cancelled run is missing, one that was not graded is not: only the second evaluation is complete', () => {
    const tasks = [{ id: 'a', scores: [1, null] }];
    const cancelled = { kind: 'cancelled', code: 'ROLLOUT_E_CANCELLED', message: 'cancelled' };
    expect(summaryOf(tasks, { fault: cancelled })).toMatchObject({
      complete: false,
      note: '1 runs are missing',
    });
    expect(summaryOf(tasks)).toMatchObject({ complete: true, note: null });
  });

  it('an evaluation says what it rests on', () => {
    const text = describeEvaluation(
      summaryOf(
        [
          { id: 'a', scores: [1, null] },
          { id: 'b', scores: [0, 0] },
        ],
        { complete: false, note: 'half' },
      ),
    );
    expect(text).toContain('licence of the set: MIT');
    expect(text).toContain('partial: no overall score of a suite (half; partial: 2 tasks)');
    expect(text).toContain('missing counted as 0: 0.250');
    expect(text).toMatch(/cost: policy \$0\.0040 \(400 \+ 40 tokens\), judge \$0\.0080/);
  });
});
