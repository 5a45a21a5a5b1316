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

export type ProviderName =
  { provider: 'bubblewrap'; runtime: null } | { provider: 'docker'; runtime: string | null };

/** @throws TreewardError CLI_E_PROVIDER */
export function parseProvider(text: string): ProviderName {
  if (text === 'bubblewrap') return { provider: text, runtime: null };
  const [known, runtime = null] = /^docker(?::(\w+))?$/.exec(text) ?? [];
  if (known !== undefined) return { provider: 'docker', runtime };
  throw new TreewardError('CLI_E_PROVIDER', `--provider ${text}: not known`, {
    hints: ['bubblewrap', 'docker', 'docker:runsc'],
  });
}

/** @throws TreewardError CLI_E_PROVIDER; SANDBOX_E_TIER when it cannot be used here */
export async function providerFlag(text: string): Promise<BubblewrapProvider | DockerProvider> {
  const { provider, runtime } = parseProvider(text);
  if (provider === 'bubblewrap') return configuredProvider({ provider });
  return configuredProvider({ provider, socket: null, image: null, runtime });
}
