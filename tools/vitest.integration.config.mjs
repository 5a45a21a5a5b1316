// Settings of the `integration` target (tools/nx-integration.mjs). Started in a package's folder.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const name = JSON.parse(readFileSync(join(process.cwd(), 'package.json'), 'utf8')).nx.name;
const workspace = join(import.meta.dirname, '..');

export default defineConfig({
  root: process.cwd(),
  cacheDir: join(workspace, `node_modules/.vite/integration-${name}`),
  ssr: { resolve: { conditions: ['@treeward/source', 'node', 'development|production'] } },
  test: {
    name: `integration-${name}`,
    environment: 'node',
    include: ['src/**/*.integration.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    reporters: [
      'default',
      ['json', { outputFile: join(workspace, `test-results/integration-${name}.json`) }],
    ],
  },
});
