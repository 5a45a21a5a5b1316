import { Option } from 'commander';
import { TreewardError } from '@treeward/base';
import type { BubblewrapProvider, DockerProvider } from '@treeward/sandbox';
import { configuredProvider } from '../sandbox-provider.js';

/** The `[sandbox]` section of a config as one flag. */
export const providerOption = (): Option =>
  new Option(
    '--provider <name>',
    'where rollouts run: bubblewrap, docker or docker:<runtime> (daemon: $DOCKER_HOST)',
  ).default('bubblewrap');

/** @throws TreewardError CLI_E_PROVIDER; SANDBOX_E_TIER when it cannot be used here */
export async function providerFlag(text: string): Promise<BubblewrapProvider | DockerProvider> {
  if (text === 'bubblewrap') return configuredProvider({ provider: text });
  const [known, runtime = null] = /^docker(?::(\w+))?$/.exec(text) ?? [];
  if (known === undefined) {
    throw new TreewardError('CLI_E_PROVIDER', `--provider ${text}: not known`, {
      hints: ['bubblewrap', 'docker', 'docker:runsc'],
    });
  }
  return configuredProvider({ provider: 'docker', socket: null, image: null, runtime });
}
