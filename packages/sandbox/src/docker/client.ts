import { createRequire } from 'node:module';
import type Docker from 'dockerode';

/**
 * A client of the daemon behind a unix socket; does no I/O. dockerode is loaded with the first one: the gRPC and SSH that
 * it brings take 20 MB and 0.4 CPU s, which every command would pay, and a larger process forks slower.
 */
export function dockerClient(socketPath: string): Docker {
  const Client = createRequire(import.meta.url)('dockerode') as typeof Docker;
  return new Client({ socketPath });
}
