// Nx plugin: a package that has `src/**/*.integration.test.ts` gets the target `integration`. These tests drive the
// real CLIs in real sandboxes, so their outcome hangs on more than source files: never from the cache, never two at once.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const projectOf = (file) => file.slice(0, file.indexOf('/src/'));

export const name = 'treeward-integration';

export const createNodesV2 = [
  '{packages/*,native,datasets,benchmarks}/src/**/*.integration.test.ts',
  (files, _options, { workspaceRoot }) => {
    const byProject = groupBy(files, projectOf);
    return [...byProject].map(([folder, members]) => {
      const short = JSON.parse(readFileSync(join(workspaceRoot, folder, 'package.json'), 'utf8')).nx.name;
      const config = join(relative(folder, 'tools'), 'vitest.integration.config.mjs');
      const integration = {
        command: `vitest run --config ${config}`,
        options: { cwd: folder },
        dependsOn: ['build', '^build', 'build-native', '^build-native', 'build-init', '^build-init'],
        cache: false,
        parallelism: false,
        outputs: [`{workspaceRoot}/test-results/integration-${short}.json`],
      };
      return [members[0], { projects: { [folder]: { targets: { integration } } } }];
    });
  },
];

/** As `Map.groupBy`, which Node 20 has not. */
function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
