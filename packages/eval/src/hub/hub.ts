import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { extname, join } from 'node:path';
import { z } from 'zod';
import { readJson, TreewardError, writeFileAtomic, writeJsonAtomic } from '@treeward/base';
import { safePath } from '../formats/safe-path.js';

export interface HubOptions {
  /** A server with the hub's API. @default the variable HF_ENDPOINT, else the public hub */
  url?: string;
  /** @default main */
  revision?: string;
  /** Where data sets are kept. @default $TREEWARD_CACHE/datasets, else treeward/datasets below $XDG_CACHE_HOME or ~/.cache */
  cache?: string;
  /** Told what is loaded and under which licence. */
  say?: (line: string) => void;
}

/** What was fetched. */
export interface HubSet {
  /** What `loadTasks` takes. */
  path: string;
  name: string;
  revision: string;
  licence: string;
}

const info = z.looseObject({
  sha: z.string().nullish(),
  gated: z.union([z.boolean(), z.string()]).nullish(),
  siblings: z.array(z.looseObject({ rfilename: z.string() })),
  cardData: z.looseObject({ license: z.union([z.string(), z.array(z.string())]).nullish() }).nullish(),
  tags: z.array(z.string()).nullish(),
});

const DATA = new Set(['.jsonl', '.ndjson', '.parquet', '.csv']);
const FILE_LIMIT = 2 * 1024 ** 3;

/**
 * Fetches the data files of a public data set (jsonl, parquet, csv) by `owner/name`: `path` is its one file of rows, or the folder where
 * there are only CSVs. Parquet becomes JSON lines. The licence is said and kept beside the data; a
 * revision that is there is not fetched again.
 * @throws TreewardError HUB_E_NAME, HUB_E_UNREACHABLE, HUB_E_MISSING, HUB_E_GATED, HUB_E_REPLY, HUB_E_EMPTY
 */
export async function loadHub(name: string, options: HubOptions = {}): Promise<HubSet> {
  if (!/^[\w.-]+\/[\w.-]+$/.test(name)) {
    throw new TreewardError('HUB_E_NAME', `--hub ${name}: expected owner/name`, { data: { name } });
  }
  const url = (options.url ?? process.env['HF_ENDPOINT'] ?? 'https://huggingface.co').replace(/\/$/, '');
  const revision = options.revision ?? 'main';
  const parsed = info.safeParse(
    JSON.parse((await get(`${url}/api/datasets/${name}/revision/${revision}`, name)).toString('utf8')),
  );
  if (!parsed.success)
    throw new TreewardError(
      'HUB_E_REPLY',
      `${name}: the hub's answer is not one: ${parsed.error.issues[0]!.message}`,
    );
  const { sha, siblings, cardData, tags } = parsed.data;
  const licence = [
    cardData?.license ??
      tags?.find((tag) => tag.startsWith('license:'))?.slice('license:'.length) ??
      'not stated',
  ]
    .flat()
    .join(', ');
  options.say?.(`${name} at ${sha ?? revision}: licence ${licence}`);
  const directory = join(options.cache ?? defaultCache(), name.replace('/', '+'), sha ?? revision);
  const done = join(directory, 'dataset.json');
  if (!existsSync(done)) {
    const files = siblings
      .map(({ rfilename }) => rfilename)
      .filter((file) => DATA.has(extname(file).toLowerCase()));
    if (files.length === 0) {
      throw new TreewardError('HUB_E_EMPTY', `${name}: no jsonl, parquet or csv file`, {
        data: { name, files: siblings.length },
      });
    }
    const paths = files.map((file) => join(directory, safePath(file, name)));
    for (const [at, file] of files.entries()) {
      options.say?.(`fetching ${file}`);
      const bytes = await get(
        `${url}/datasets/${name}/resolve/${sha ?? revision}/${file.split('/').map(encodeURIComponent).join('/')}`,
        name,
      );
      await keep(paths[at]!, bytes);
    }
    writeJsonAtomic(done, { name, revision: sha ?? revision, licence, files, url });
  }
  const path = entryOf(directory, readJson<{ files: string[] }>(done).files);
  return { path, name, revision: sha ?? revision, licence };
}

function defaultCache(): string {
  const { TREEWARD_CACHE, XDG_CACHE_HOME } = process.env;
  return join(TREEWARD_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'treeward'), 'datasets');
}

async function keep(path: string, bytes: Buffer): Promise<void> {
  if (extname(path).toLowerCase() !== '.parquet') {
    writeFileAtomic(path, bytes);
    return;
  }
  const { parquetRows } = await import('./parquet.js');
  const rows = await parquetRows(bytes);
  writeFileAtomic(`${path}.jsonl`, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

/** The one file of rows. @throws TreewardError HUB_E_CHOICE when there are several */
function entryOf(directory: string, files: readonly string[]): string {
  const rows = files.flatMap((file) => {
    const kind = extname(file).toLowerCase();
    if (kind === '.csv') return [];
    return [join(directory, kind === '.parquet' ? `${file}.jsonl` : file)];
  });
  if (rows.length === 0) return directory;
  if (rows.length === 1) return rows[0]!;
  throw new TreewardError(
    'HUB_E_CHOICE',
    `${directory} holds ${rows.length} files of rows: name the one that is meant by --tasks`,
    {
      data: { files: rows },
      hints: readdirSync(directory).map((file) => join(directory, file)),
    },
  );
}

async function get(url: string, name: string): Promise<Buffer> {
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(600_000) });
  } catch (cause) {
    const why = (cause as Error & { cause?: Error }).cause?.message ?? (cause as Error).message;
    throw new TreewardError('HUB_E_UNREACHABLE', `${name}: the hub cannot be reached (${why})`, {
      cause,
      hints: ['without a network: fetch the files elsewhere and name them by --tasks'],
    });
  }
  const { status } = response;
  if (status === 401 || status === 403) {
    throw new TreewardError('HUB_E_GATED', `${name}: the data set is gated or private (${status})`, {
      hints: ['accept its terms in a browser, fetch it there and name the files by --tasks'],
    });
  }
  if (!response.ok)
    throw new TreewardError('HUB_E_MISSING', `${name}: the hub answers ${status} for ${url}`, {
      data: { status },
    });
  const declared = Number(response.headers.get('content-length') ?? 0);
  if (declared > FILE_LIMIT) throw new TreewardError('HUB_E_HUGE', `${url}: ${declared} bytes are too many`);
  return Buffer.from(await response.arrayBuffer());
}
