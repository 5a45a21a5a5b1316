import { Command } from 'commander';
import { BubblewrapProvider, DockerProvider } from '@treeward/sandbox';

export function sweepCommand(): Command {
  return new Command('sweep')
    .description('remove sandboxes that dead processes left behind; safe beside live runs')
    .option('--docker <socket>', 'socket of the Docker daemon whose containers are looked at', undefined)
    .option('--json', 'print what was found as JSON')
    .addHelpText('after', '\nA daemon that does not answer has no containers: that is no error.')
    .action(async ({ docker, json }: { docker?: string; json?: boolean }) => {
      const providers = [
        new BubblewrapProvider(),
        new DockerProvider(docker === undefined ? {} : { socket: docker }),
      ];
      const found: Record<string, { swept: number; live: number }> = {};
      for (const provider of providers) found[provider.name] = await provider.sweep();
      if (json) process.stdout.write(JSON.stringify(found) + '\n');
      else
        for (const [name, { swept, live }] of Object.entries(found))
          process.stdout.write(`${name.padEnd(12)} ${swept} removed, ${live} alive\n`);
    });
}
