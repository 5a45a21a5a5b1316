import { describe, expect, it } from 'vitest';
import { loadClawgymDirectories } from '../formats/clawgym-directory.js';
import { clawgymFiles, folderOf } from '../testing/tasks.js';
import { chanceUse, mentionedPaths, networkUse } from './scan.js';

const task = (check: string) => loadClawgymDirectories(folderOf(clawgymFiles('', { check }))).tasks[0]!;

describe('what a checker’s text reaches for', () => {
  it.each([
    'import socket',
    'from urllib.request import urlopen',
    'r = urlopen(u)',
    'subprocess.run(["curl", "-s", u])',
    'os.system("wget https://x")',
    'os.system("pip install x")',
  ])('network: %s', (line) => {
    expect(networkUse(task(line))).toHaveLength(1);
  });

  it.each([
    'if any(t in cmd for t in ["curl", "wget", "web"]):',
    '# import socket',
    'import json, urllib.parse',
    'pocket = 1',
  ])('no network: %s', (line) => {
    expect(networkUse(task(line))).toEqual([]);
  });

  it.each([
    ['datetime.now()', 1],
    ['random.choice(x)', 1],
    ['uuid.uuid4()', 1],
    ['datetime.strptime(a, b)', 0],
    ['a_random_name = 1', 0],
  ])('chance: %s', (line, count) => {
    expect(chanceUse(task(line))).toHaveLength(count);
  });

  it('paths that a prompt names', () => {
    expect(
      mentionedPaths(
        'Read data/in.csv and write out/report.md, see https://a.org/x.html or mail a@b.com; 3.5 of v1.2.',
      ),
    ).toEqual(['data/in.csv', 'out/report.md']);
  });
});
