import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { OWNER_NAME } from '../owner.js';
import { isAlive, uptimeMs } from '../processes.js';
import { LABEL } from './labels.js';

/**
 * Removes the containers of dead owners, and those whose time is over. Their folders are the business of sweepRoot.
 * @returns how many had no lease below `root`, so that nobody else counts them
 */
export async function sweepContainers(docker: Docker, root: string): Promise<number> {
  let containers: Docker.ContainerInfo[];
  try {
    containers = await docker.listContainers({ all: true, filters: { label: [LABEL.owner] } });
  } catch (error) {
    if (['ENOENT', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0; // no daemon, no containers
    throw error;
  }
  let orphans = 0;
  await Promise.all(
    containers.map(async ({ Id, Labels }) => {
      const owner = Labels[LABEL.owner] ?? '';
      const [, pid, start] = OWNER_NAME.exec(owner) ?? [];
      const lives = pid !== undefined && isAlive(Number(pid), start!);
      if (lives && Number(Labels[LABEL.expires]) > uptimeMs()) return;
      if (!lives && !existsSync(join(root, owner, 'sb', `${Labels[LABEL.id]}.json`))) orphans++;
      await docker
        .getContainer(Id)
        .remove({ force: true, v: true })
        .catch((error: { statusCode?: number }) => {
          if (error.statusCode !== 404 && error.statusCode !== 409) throw error; // another sweeper was first
        });
    }),
  );
  return orphans;
}
