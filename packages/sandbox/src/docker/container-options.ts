import { join } from 'node:path';
import type Docker from 'dockerode';
import type { StartRequest } from '../agent-provider.js';
import { BASE_ENV, MODEL_PORT, WORKSPACE } from '../bwrap-arguments.js';
import { scratchSizes } from '../limits.js';
import { HOME } from '../owner.js';
import { uptimeMs } from '../processes.js';
import { LABEL } from './labels.js';
import { seccompProfile } from './seccomp-profile.js';

export interface ContainerRequest extends StartRequest {
  /** Id of the image. */
  image: string;
  /** Another runtime than the daemon's own, such as `runsc`. */
  runtime: string | null;
  /** Written into labels. */
  run: string;
}

const AGENT = '/run/treeward/init';

/**
 * The same machine as bwrap-arguments.ts makes, as a container: the agent is its first process and speaks on the attached
 * streams. Nothing is logged by the daemon: what commands print belongs to the rollout.
 */
export function containerOptions(request: ContainerRequest, merged: string): Docker.ContainerCreateOptions {
  const { folder, limits } = request;
  const sizes = scratchSizes(limits);
  const bind = (Source: string, Target: string, ReadOnly = true): Docker.MountSettings => ({
    Type: 'bind',
    Source,
    Target,
    ReadOnly,
  });
  const etc = ['passwd', 'group', 'nsswitch.conf'].map((name) =>
    bind(join(folder.path, 'etc', name), `/etc/${name}`),
  );
  const model = request.modelDirectory;
  return {
    Image: request.image,
    Entrypoint: [AGENT],
    Cmd: [
      ...['agent', '--home', HOME],
      ...(model ? ['--port', String(MODEL_PORT), '--model', '/run/model/model.sock'] : []),
    ],
    Env: Object.entries(BASE_ENV).map(([name, value]) => `${name}=${value}`),
    User: `${request.uid}:${request.uid}`,
    WorkingDir: WORKSPACE,
    Hostname: 'sandbox',
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    StdinOnce: true, // when its owner is gone its input ends, and with it the agent
    Labels: {
      [LABEL.owner]: folder.name,
      [LABEL.id]: request.id,
      [LABEL.run]: request.run,
      [LABEL.expires]: String(uptimeMs() + request.ttl),
    },
    HostConfig: {
      ...(request.runtime && { Runtime: request.runtime }),
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', `seccomp=${seccompProfile()}`],
      Memory: limits.memory,
      MemorySwap: limits.memory,
      PidsLimit: limits.pids,
      NanoCpus: Math.round(limits.cpus * 1e9),
      ShmSize: sizes.shm,
      IpcMode: 'private',
      Tmpfs: { '/tmp': `rw,exec,size=${sizes.tmp},mode=1777`, '/var/tmp': 'rw,size=1m,mode=1777' },
      LogConfig: { Type: 'none', Config: {} },
      Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
      Mounts: [
        ...etc,
        bind(folder.agent, AGENT),
        ...(model ? [bind(model, '/run/model')] : []),
        ...request.mounts.map(({ host, inside }) => bind(host, inside)),
        bind(merged, WORKSPACE, false),
        ...request.covers.map(({ host, path }) => bind(host, `${WORKSPACE}/${path}`)),
      ],
    },
  };
}
