import { TreewardError } from '@treeward/base';
import { BubblewrapProvider, DockerProvider } from '@treeward/sandbox';
import type { TrainConfig } from './config.js';

/**
 * The provider that the config names, tried once: a daemon that is not there is found before the first rollout, not as a
 * fault of each.
 * @throws TreewardError SANDBOX_E_TIER with what is missing
 */
export async function configuredProvider(
  config: TrainConfig['sandbox'],
): Promise<BubblewrapProvider | DockerProvider> {
  const sandboxes = make(config);
  const { tier, reasons } = await sandboxes.probe();
  if (tier !== 'none') return sandboxes;
  throw new TreewardError(
    'SANDBOX_E_TIER',
    `sandbox.provider = "${config.provider}" cannot be used here: ${reasons.join('; ')}`,
    {
      data: { field: 'sandbox.provider', reasons },
      hints: ['`treeward doctor` says what each provider lacks'],
    },
  );
}

function make(config: TrainConfig['sandbox']): BubblewrapProvider | DockerProvider {
  if (config.provider === 'bubblewrap') return new BubblewrapProvider();
  const { socket, image, runtime } = config;
  return new DockerProvider({
    ...(socket !== null && { socket }),
    ...(image !== null && { image }),
    ...(runtime !== null && { runtime }),
  });
}
