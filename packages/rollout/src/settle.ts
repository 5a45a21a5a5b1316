import { setTimeout as sleep } from 'node:timers/promises';
import type { EndpointSummary, GatewayControl } from '@treeward/gateway';

/**
 * Waits until nothing is in flight and the number of calls stays the same over several looks: a harness may leave requests
 * behind when it exits. Bounded, because a client that hangs must not hold the batch.
 */
export async function settle(
  gateway: GatewayControl,
  rolloutId: string,
  options: { looks?: number; pauseMs?: number; limitMs?: number } = {},
): Promise<EndpointSummary> {
  const { looks = 3, pauseMs = 15, limitMs = 5000 } = options;
  const deadline = performance.now() + limitMs; // not the date, which may jump
  let quiet = 0;
  let before = await gateway.status(rolloutId);
  while (performance.now() < deadline) {
    await sleep(pauseMs);
    const now = await gateway.status(rolloutId);
    quiet = now.pending === 0 && now.calls === before.calls ? quiet + 1 : 0;
    before = now;
    if (quiet >= looks) break;
  }
  return before;
}
