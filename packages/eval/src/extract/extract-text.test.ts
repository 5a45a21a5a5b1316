import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { docx, pdf, sqlite, xlsx } from '../testing/office-files.js';
import { folderOf } from '../testing/tasks.js';
import { extractText } from './extract-text.js';

const extract = async (name: string, content: string | Uint8Array) =>
  extractText(join(folderOf({ [name]: content }), name));

describe('text of', () => {
  it('a workbook: every sheet, values as shown', async () => {
    const { text } = await extract(
      'a.xlsx',
      xlsx({
        Plan: [
          ['what', 'cost'],
          ['a,b', 12.5],
        ],
        Notes: [['x']],
      }),
    );
    expect(text).toBe('## sheet Plan\nwhat,cost\n"a,b",12.5\n\n## sheet Notes\nx');
  });

  it('a document', async () => {
    expect((await extract('a.docx', docx('First &amp; last', 'Second'))).text).toBe('First & last\n\nSecond');
  });

  it('a PDF, page by page', async () => {
    expect((await extract('a.pdf', pdf('Quarterly report'))).text).toBe('## page 1\nQuarterly report');
  });

  it('a database: definitions and rows', async () => {
    const { text } = await extract(
      'a.db',
      await sqlite("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x,y'), (NULL, x'00ff');"),
    );
    expect(text).toBe('## table t (2 rows)\nCREATE TABLE t (a, b)\na,b\n1,"x,y"\n,<2 bytes>');
  });

  it('a database with many rows says how many are not shown', async () => {
    const { text } = await extract(
      'a.sqlite',
      await sqlite(
        'CREATE TABLE t (a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700) INSERT INTO t SELECT i FROM n;',
      ),
    );
    expect(text).toContain('[…200 rows cut]');
  });

  it('a notebook: cells and what they printed', async () => {
    const cells = [
      { cell_type: 'markdown', source: ['# A\n', 'b'] },
      {
        cell_type: 'code',
        source: 'print(1)',
        outputs: [{ text: ['1\n'] }, { data: { 'image/png': 'AAAA' } }, { ename: 'E', evalue: 'v' }],
      },
    ];
    const { text } = await extract('a.ipynb', JSON.stringify({ cells }));
    expect(text).toBe(
      '## markdown cell\n# A\nb\n\n## code cell\nprint(1)\n### output\n1\n\n<image/png>\nE: v',
    );
  });

  it('anything else that is text, without its byte order mark', async () => {
    expect((await extract('a.md', '\uFEFFhä')).text).toBe('hä');
  });
});

describe('what cannot be read says why and never throws', () => {
  it.each(['a.xlsx', 'a.docx', 'a.pdf', 'a.db', 'a.ipynb'])('rubbish as %s', async (name) => {
    const { text, why } = await extract(name, 'rubbish, not a file of its kind');
    // A workbook's parser takes text for a table: that is its text.
    if (name === 'a.xlsx') expect(text).toContain('rubbish');
    else expect([text, why]).toEqual([null, expect.stringContaining('cannot be read')]);
  });

  it('binary, links and cut files', async () => {
    expect(await extract('a.bin', new Uint8Array([65, 0, 66]))).toEqual({ text: null, why: 'binary' });
    const root = folderOf({});
    symlinkSync('/etc/passwd', join(root, 'l.txt'));
    expect(await extractText(join(root, 'l.txt'))).toEqual({ text: null, why: 'not a regular file' });
    expect((await extract('big.txt', 'x'.repeat(3 * 1024 * 1024))).text).toMatch(/\[…1048576 bytes cut\]$/);
  });
});
