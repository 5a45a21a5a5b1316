import { createHash } from 'node:crypto';

/** What the default image is made of: packages of one Debian release, nothing else. */
export const IMAGE_RECIPE = {
  suite: 'bookworm',
  variant: 'minbase',
  packages: ['ca-certificates', 'git', 'libstdc++6', 'python3', 'ripgrep'],
} as const;

const hash = createHash('sha256').update(JSON.stringify(IMAGE_RECIPE)).digest('hex').slice(0, 12);

/** Named by its recipe, so that a changed recipe is another image. */
export const DEFAULT_IMAGE = `treeward/debian:${IMAGE_RECIPE.suite}-${hash}`;
