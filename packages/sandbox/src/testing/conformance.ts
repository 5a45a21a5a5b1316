import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe } from 'vitest';
import type { SandboxProvider } from '../types.js';
import { covers, files } from './conformance-files.js';
import { lifeCycle } from './conformance-life-cycle.js';
import { network } from './conformance-network.js';
import { runs } from './conformance-run.js';
import { snapshots } from './conformance-snapshots.js';
import { telemetry } from './conformance-telemetry.js';
import { sandboxOpener, scratch } from './open.js';

/** What any provider must do. Call it in a test file; it registers a `describe` block. */
export function sandboxConformance(name: string, makeProvider: () => SandboxProvider): void {
  describe(`${name}: sandbox conformance`, () => {
    let provider: SandboxProvider;
    const host = scratch();
    beforeAll(() => {
      provider = makeProvider();
    });
    afterAll(() => rmSync(host, { recursive: true, force: true }));
    const open = sandboxOpener(() => provider);

    runs(open);
    files(open, host);
    covers(open, host);
    telemetry(open, host);
    snapshots(open, host);
    network(open, host);
    lifeCycle(open, host, () => provider);
  });
}
