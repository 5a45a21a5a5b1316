import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TreewardError } from '@treeward/base';
import { loadTask } from './task.js';

function folder(entry?: string, reward = true): string {
  const directory = mkdtempSync(join(tmpdir(), 'task-'));
  if (entry !== undefined) writeFileSync(join(directory, 'data_entry.json'), entry);
  if (reward) {
    mkdirSync(join(directory, 'reward'));
    writeFileSync(join(directory, 'reward', 'reward.sh'), 'echo 1');
  }
  return directory;
}

const codeOf = (work: () => unknown): [string, unknown] => {
  try {
    work();
  } catch (error) {
    if (TreewardError.isInstance(error)) return [error.code, error.data['field']];
  }
  return ['no error', undefined];
};

describe('loadTask', () => {
  it('reads a task, with and without inputs', () => {
    const directory = folder('{"task_id":"t","user_query":"do it","metadata":{"category":""}}');
    expect(loadTask(directory)).toMatchObject({ id: 't', query: 'do it', inputFiles: null });
    mkdirSync(join(directory, 'input_files'));
    expect(loadTask(directory).inputFiles).toBe(join(directory, 'input_files'));
  });

  it('reads what the user says later', () => {
    const sessions = '[{"prompt":"and that"},{"prompt":"anew","new_session":true}]';
    const task = loadTask(folder(`{"task_id":"t","user_query":"do it","sessions":${sessions}}`));
    expect(task.sessions).toEqual([
      { prompt: 'do it', newSession: false },
      { prompt: 'and that', newSession: false },
      { prompt: 'anew', newSession: true },
    ]);
    expect(codeOf(() => loadTask(folder('{"task_id":"t","user_query":"x","sessions":[{}]}')))).toEqual([
      'TASK_E_ENTRY',
      'sessions.0.prompt',
    ]);
  });

  it('reads tools of its own, and names what is wrong with them', () => {
    const directory = folder('{"task_id":"t","user_query":"x"}');
    mkdirSync(join(directory, 'mcp'));
    const write = (servers: unknown): void =>
      writeFileSync(join(directory, 'mcp', 'servers.json'), JSON.stringify({ mcpServers: servers }));
    write({ calc: { command: 'python3', args: ['./calc.py', '-v'] } });
    expect(loadTask(directory).mcp).toEqual({
      servers: [{ name: 'calc', command: 'python3', args: ['/opt/mcp/calc.py', '-v'] }],
      mount: { host: join(directory, 'mcp'), inside: '/opt/mcp' },
    });
    write({ calc: { command: 'x', url: 'http://elsewhere' } });
    expect(codeOf(() => loadTask(directory))).toEqual(['TASK_E_MCP', 'mcpServers.calc']);
  });

  it.each([
    ['no folder content', undefined, true, 'TASK_E_MISSING', undefined],
    ['not JSON', '{', true, 'FILE_E_JSON', undefined],
    ['no query', '{"task_id":"t"}', true, 'TASK_E_ENTRY', 'user_query'],
    ['empty id', '{"task_id":"","user_query":"x"}', true, 'TASK_E_ENTRY', 'task_id'],
    ['no checker', '{"task_id":"t","user_query":"x"}', false, 'TASK_E_REWARD', undefined],
  ])('refuses a task with %s', (_, entry, reward, code, field) => {
    expect(codeOf(() => loadTask(folder(entry, reward)))).toEqual([code, field]);
  });
});
