import { existsSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { TaskFile } from '../types.js';
import { filesBelow } from './files-below.js';

export interface PlainImage {
  /** Working directory of the image; `/app` is Harbor's habit. */
  workdir: string;
  /** What the build would copy into the working directory. */
  files: TaskFile[];
  /** Instructions that a sandbox without containers cannot carry out. */
  unsupported: string[];
}

/**
 * As much of a Dockerfile as a sandbox on the host's own system can do: WORKDIR, and COPY or ADD of local files below it. The
 * rest (RUN, other base systems, copies elsewhere) is listed, not carried out.
 */
export function readDockerfile(text: string, context: string): PlainImage {
  const image: PlainImage = { workdir: '/app', files: [], unsupported: [] };
  const lines = text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim());
  for (const line of lines) {
    const [, name, rest] = /^([A-Za-z]+)\s+(.+)$/.exec(line) ?? [];
    if (name === undefined || line.startsWith('#')) continue;
    const instruction = name.toUpperCase();
    if (instruction === 'WORKDIR') image.workdir = posix.resolve(image.workdir, rest!.replaceAll('"', ''));
    else if (instruction === 'COPY' || instruction === 'ADD') copy(image, rest!, context, line);
    else if (
      !['FROM', 'ENV', 'LABEL', 'CMD', 'ENTRYPOINT', 'EXPOSE', 'ARG', 'SHELL', 'USER'].includes(instruction)
    ) {
      image.unsupported.push(line);
    }
  }
  return image;
}

function copy(image: PlainImage, rest: string, context: string, line: string): void {
  const words = rest.startsWith('[')
    ? jsonWords(rest)
    : rest.split(/\s+/).filter((word) => !word.startsWith('--'));
  const dest = words?.at(-1);
  const sources = words?.slice(0, -1) ?? [];
  if (dest === undefined || sources.length === 0 || /--from=/.test(rest)) {
    image.unsupported.push(line);
    return;
  }
  const target = posix.resolve(image.workdir, dest);
  const inside = posix.relative(image.workdir, target);
  for (const source of sources) {
    const from = join(context, source);
    if (inside.startsWith('..') || posix.isAbsolute(inside) || !existsSync(from)) {
      image.unsupported.push(line);
      return;
    }
    if (statSync(from).isDirectory())
      image.files.push(...filesBelow(from, inside === '' ? '' : `${inside}/`));
    else {
      const asFile = !dest.endsWith('/') && inside !== '' && sources.length === 1;
      image.files.push({
        path: asFile ? inside : posix.join(inside, posix.basename(source)),
        content: { from },
      });
    }
  }
}

function jsonWords(text: string): string[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((word) => typeof word === 'string')
      ? (value as string[])
      : null;
  } catch {
    return null;
  }
}
