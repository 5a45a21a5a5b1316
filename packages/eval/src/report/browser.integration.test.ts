import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { DOMAINS } from '../formats/domains.js';
import { summaryOf } from '../testing/summaries.js';
import { folderOf } from '../testing/tasks.js';
import { compareEvaluations } from './comparison.js';
import { comparisonHtml } from './html.js';

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'chrome'];
const browser =
  process.env['TREEWARD_BROWSER'] ??
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
if (browser === undefined)
  console.warn('skipped: the report in a real browser: none is installed (TREEWARD_BROWSER names one)');

/** What the browser makes of the page, written into it by a script of the test's: the page itself has none. */
interface Seen {
  rows: number[];
  circles: number;
  /** Texts of the picture that reach beyond it. */
  clipped: string[];
  /** How far the page is wider than the window, CSS pixels. */
  overflow: number;
  /** What the page fetched. */
  fetched: number;
  bold: number;
}
const LOOK = `<script>
const box = document.querySelector('svg').getBoundingClientRect();
const texts = [...document.querySelectorAll('svg text')];
document.body.dataset.seen = JSON.stringify({
  rows: [...document.querySelectorAll('table')].map((table) => table.tBodies[0].rows.length),
  circles: document.querySelectorAll('svg circle').length,
  clipped: texts.filter((text) => { const at = text.getBoundingClientRect(); return at.width === 0 || at.left < box.left || at.right > box.right || at.bottom > box.bottom; }).map((text) => text.textContent),
  overflow: document.documentElement.scrollWidth - innerWidth,
  fetched: performance.getEntriesByType('resource').length,
  bold: document.querySelectorAll('b').length,
});
</script>`;

async function look(html: string, width: number): Promise<Seen> {
  const folder = folderOf({});
  const page = join(folder, 'comparison.html');
  mkdirSync(join(folder, 'profile'));
  writeFileSync(page, html.replace('</body>', `${LOOK}</body>`));
  const { stdout } = await promisify(execFile)(
    browser!,
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(folder, 'profile')}`],
      ...[`--window-size=${width},900`, '--dump-dom', `file://${page}`],
    ],
    { timeout: 60_000, maxBuffer: 16 * 1024 * 1024 },
  );
  const [, seen] = /data-seen="([^"]*)"/.exec(stdout) ?? [];
  return JSON.parse((seen ?? 'null').replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as Seen;
}

describe.skipIf(browser === undefined)('the report in a real browser', () => {
  const tasks = (score: number) =>
    DOMAINS.map(({ name }, at) => ({ id: `t${at}`, category: name, scores: [score, score] }));
  const cell = (label: string, harness: string, score: number) =>
    summaryOf(tasks(score), { identity: { label, harness } });

  it.each([1150, 480])(
    '%i pixels wide: tables, picture and names as they are, nothing cut off',
    async (width) => {
      const comparison = compareEvaluations([
        cell('base', 'claude-code', 0),
        cell('cold-start', 'claude-code', 0.25),
        cell('trained <b>long</b> name', 'claude-code', 1),
        cell('base', 'openclaw-gateway', 0),
        cell('trained', 'openclaw-gateway', 0.875),
      ]);
      const seen = await look(comparisonHtml(comparison), width);
      expect(seen).toMatchObject({ circles: 5, fetched: 0, bold: 0, clipped: [] });
      expect(seen.rows).toEqual([
        5,
        5 + comparison.domains.filter(({ source }) => source === 'published').length,
        6,
      ]);
      expect(seen.overflow).toBeLessThanOrEqual(0);
    },
  );
});
