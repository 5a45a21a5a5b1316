import type { GatewayControl, WitnessEvent } from '@treeward/gateway';
import type { FileChange } from '@treeward/sandbox';
import { describe, expect, it } from 'vitest';
import { newSince, toolExec, WorkspaceWitness } from './witness.js';

const file = (path: string, sha256: string, kind: FileChange['kind'] = 'create'): FileChange => ({
  path,
  kind,
  mode: 0o644,
  size: 3,
  sha256,
});

describe('newSince', () => {
  it('names what is new, what changed again and what was undone, each once', () => {
    const known = new Map<string, string>();
    expect(newSince(known, [file('a', '1'), file('b', '1')]).map(({ path }) => path)).toEqual(['a', 'b']);
    expect(newSince(known, [file('a', '1'), file('b', '2')])).toEqual([
      { path: 'b', kind: 'create', size: 3, sha256: '2' },
    ]);
    expect(newSince(known, [file('b', '2')])).toEqual([{ path: 'a', kind: 'undone', size: 0 }]);
    expect(newSince(known, [file('b', '2')])).toEqual([]);
  });

  it('sees a mode that changed and a link that leads elsewhere', () => {
    const known = new Map<string, string>();
    const link = { path: 'l', kind: 'symlink', mode: 0o777, size: 1, target: 'x' } as const;
    newSince(known, [file('a', '1'), link]);
    const changed = newSince(known, [
      { ...file('a', '1'), mode: 0o755 },
      { ...link, target: 'y' },
    ]);
    expect(changed.map(({ path }) => path)).toEqual(['a', 'l']);
  });
});

describe('WorkspaceWitness', () => {
  it('looks at every arrival before it acknowledges it, then once at the end', async () => {
    const seen: WitnessEvent[] = [];
    const calls: (number | null)[] = [0, 2, null];
    const asked: number[] = [];
    const gateway = {
      arrival: (_id: string, after: number) => {
        asked.push(after);
        return Promise.resolve(calls.shift() ?? null);
      },
      witness: (_id: string, events: readonly WitnessEvent[]) => {
        seen.push(...events);
        return Promise.resolve();
      },
      status: () => Promise.resolve({}),
    } as unknown as GatewayControl;
    const states = [[file('a', '1')], [file('a', '1'), file('b', '1')], [file('b', '1')]];
    const witness = new WorkspaceWitness(gateway, 'r', { changes: () => Promise.resolve(states.shift()!) });
    witness.watch();
    const last = (await witness.last()).event;
    expect(asked).toEqual([0, 1, 3]);
    const told = [...seen, last].map((event) =>
      event.type === 'workspace'
        ? [event.call, ...event.changes.map(({ kind, path }) => `${kind} ${path}`)]
        : [],
    );
    expect(told).toEqual([
      [0, 'create a'],
      [2, 'create b'],
      [null, 'undone a'],
    ]);
  });
});

describe('WorkspaceWitness, when a look fails', () => {
  it('goes on with the next arrival', async () => {
    const calls: (number | null)[] = [0, 1, null];
    const told: (number | null)[] = [];
    const gateway = {
      arrival: () => Promise.resolve(calls.shift() ?? null),
      witness: (_id: string, events: readonly WitnessEvent[]) => {
        for (const event of events) if (event.type === 'workspace') told.push(event.call);
        return Promise.resolve();
      },
      status: () => Promise.resolve({}),
    } as unknown as GatewayControl;
    let looks = 0;
    const changes = (): Promise<FileChange[]> =>
      looks++ === 0 ? Promise.reject(new Error('busy')) : Promise.resolve([]);
    const witness = new WorkspaceWitness(gateway, 'r', { changes });
    witness.watch();
    await witness.last();
    expect(told).toEqual([1]);
  });
});

describe('WorkspaceWitness, when the gateway forgets the rollout', () => {
  const unknown = (): Promise<never> => Promise.reject(new Error('no endpoint was opened'));
  const nothing = (): Promise<null> => Promise.resolve(null);
  it.each([
    ['arrivals cannot be asked for', unknown, nothing],
    ['it was started again and has none', nothing, unknown],
  ])('says so, with the reason: %s', async (_, arrival, status) => {
    const gateway = { arrival, status, witness: nothing } as unknown as GatewayControl;
    const witness = new WorkspaceWitness(gateway, 'r', { changes: () => Promise.resolve([]) });
    expect(witness.lost.aborted).toBe(false);
    witness.watch();
    await expect.poll(() => witness.lost.aborted).toBe(true);
    expect(witness.lost.reason).toMatchObject({ message: 'no endpoint was opened' });
  });

  it('is not lost when it is closed', async () => {
    const gateway = { arrival: nothing, status: () => Promise.resolve({}) } as unknown as GatewayControl;
    const witness = new WorkspaceWitness(gateway, 'r', { changes: () => Promise.resolve([]) });
    witness.watch();
    await witness.last();
    expect(witness.lost.aborted).toBe(false);
  });
});

describe('toolExec', () => {
  it('writes the command as a shell would take it, cut at 2,000 characters', () => {
    const execution = { pid: 4, parentPid: 3, start: 1, end: 2, code: 0, signal: null };
    expect(toolExec({ ...execution, argv: ['sh', '-c', "echo 'a b'"] }).command).toBe(
      `sh -c 'echo '\\''a b'\\'''`,
    );
    expect(toolExec({ ...execution, argv: ['x'.repeat(5000)] }).command).toHaveLength(2000);
  });
});
