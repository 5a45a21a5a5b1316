// Makes the default image of the docker provider from Debian packages: node scripts/build-image.mjs [--socket PATH]
import { parseArgs } from 'node:util';
import { buildImage } from '../dist/index.js';

const { values } = parseArgs({ options: { socket: { type: 'string', default: '/var/run/docker.sock' } } });
try {
  console.log(
    await buildImage({ socket: values.socket, say: (text) => console.error(`build-image: ${text}`) }),
  );
} catch (error) {
  console.error(`build-image: ${error.message}`);
  for (const hint of error.hints ?? []) console.error(`  → ${hint}`);
  process.exitCode = 1;
}
