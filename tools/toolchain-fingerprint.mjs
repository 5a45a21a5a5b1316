// Prints what a compiled addon depends on besides its sources. Nx takes it as an input of native targets.
// The Node-API version rather than this node's own ABI number: one addon serves Node 20 and 24.
import { spawnSync } from 'node:child_process';

const version = (command, args = ['--version']) => {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n').slice(-2).join(' ') : 'none';
};

const fingerprint = {
  gxx: version('g++', ['-dumpfullversion']),
  cmake: version('cmake'),
  nvcc: version('nvcc'),
  napi: 8,
  platform: process.platform,
  arch: process.arch,
};
process.stdout.write(`${JSON.stringify(fingerprint)}\n`);
