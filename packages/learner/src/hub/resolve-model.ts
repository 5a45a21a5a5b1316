import { createHash, randomUUID } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { TreewardError } from '@treeward/base';
import { weightFiles } from '../checkpoint/weights.js';

export interface ResolveOptions {
  /** HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN are read from it. @default process.env */
  env?: NodeJS.ProcessEnv;
  /** Called before each file that is downloaded. */
  onDownload?: (file: string, bytes: number | null) => void;
}

const NAME = /^hf:([\w.-]+\/[\w.-]+?)(?:@([\w./-]+))?$/;
const WANTED =
  /^(config\.json|generation_config\.json|tokenizer.*|special_tokens_map\.json|vocab\.json|merges\.txt|chat_template\.jinja|[^/]*\.safetensors(\.index\.json)?)$/;

/**
 * A folder as it is; `hf:org/name[@revision]` from the hub's local cache (the layout of huggingface_hub: refs, snapshots,
 * blobs), or downloaded into it where there is a network.
 *
 * @returns the folder
 * @throws TreewardError LEARNER_E_HUB when it is in no cache and cannot be downloaded
 */
export async function resolveModel(name: string, options: ResolveOptions = {}): Promise<string> {
  if (!name.startsWith('hf:')) return name;
  const match = NAME.exec(name);
  if (!match) {
    throw new TreewardError('LEARNER_E_HUB', `${name} is no hub name`, {
      hints: ['hf:organisation/model or hf:organisation/model@revision'],
    });
  }
  const env = options.env ?? process.env;
  const [repository, revision] = [match[1]!, match[2] ?? 'main'];
  const home = env['HF_HOME'] ?? join(homedir(), '.cache', 'huggingface');
  const cache = env['HF_HUB_CACHE'] ?? join(home, 'hub');
  const folder = join(cache, `models--${repository.replaceAll('/', '--')}`);
  const local = cached(folder, revision);
  if (local) return local;
  if (env['HF_HUB_OFFLINE'] === '1') {
    throw new TreewardError('LEARNER_E_HUB', `${name} is not in ${cache}, and HF_HUB_OFFLINE is set`, {
      data: { repository, revision, cache },
    });
  }
  return download(folder, repository, revision, env, options.onDownload);
}

/** The snapshot of a revision if all its weights are there. */
function cached(folder: string, revision: string): string | null {
  const ref = join(folder, 'refs', revision);
  const commit = existsSync(ref) ? readFileSync(ref, 'utf8').trim() : revision;
  const snapshot = join(folder, 'snapshots', commit);
  if (!existsSync(join(snapshot, 'config.json'))) return null;
  try {
    return weightFiles(snapshot).every((file) => existsSync(join(snapshot, file))) ? snapshot : null;
  } catch {
    return null; // neither one file nor an index: a snapshot without its weights
  }
}

async function download(
  folder: string,
  repository: string,
  revision: string,
  env: NodeJS.ProcessEnv,
  onDownload: ResolveOptions['onDownload'],
): Promise<string> {
  const endpoint = (env['HF_ENDPOINT'] ?? 'https://huggingface.co').replace(/\/$/, '');
  const headers = env['HF_TOKEN'] ? { authorization: `Bearer ${env['HF_TOKEN']}` } : {};
  const get = async (url: string): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(url, { headers });
    } catch (cause) {
      throw new TreewardError('LEARNER_E_HUB', `cannot reach ${endpoint} for ${repository}`, {
        cause,
        data: { url },
        hints: [
          'without a network: put the model into the hub cache (HF_HOME), or give a folder',
          'a mirror: set HF_ENDPOINT',
        ],
      });
    }
    if (response.ok) return response;
    throw new TreewardError('LEARNER_E_HUB', `${url} answered ${response.status}`, {
      data: { url, status: response.status },
      hints: response.status === 401 || response.status === 403 ? ['a gated model needs HF_TOKEN'] : [],
    });
  };
  const about = (await (
    await get(`${endpoint}/api/models/${repository}/revision/${encodeURIComponent(revision)}`)
  ).json()) as { sha: string; siblings: { rfilename: string }[] };
  const snapshot = join(folder, 'snapshots', about.sha);
  for (const { rfilename: file } of about.siblings) {
    if (!WANTED.test(file) || existsSync(join(snapshot, file))) continue;
    const response = await get(`${endpoint}/${repository}/resolve/${about.sha}/${file}`);
    const length = response.headers.get('content-length');
    onDownload?.(file, length === null ? null : Number(length));
    await store(folder, snapshot, file, response);
  }
  mkdirSync(join(folder, 'refs'), { recursive: true });
  const ref = join(folder, 'refs', revision);
  mkdirSync(dirname(ref), { recursive: true });
  writeFileSync(ref, about.sha);
  const whole = cached(folder, revision);
  if (whole) return whole;
  throw new TreewardError('LEARNER_E_HUB', `${repository} has no config.json with safetensors`, {
    data: { repository, revision },
  });
}

/** A blob by its hash, and a link to it in the snapshot: a file that can be seen is whole. */
async function store(folder: string, snapshot: string, file: string, response: Response): Promise<void> {
  const blobs = join(folder, 'blobs');
  mkdirSync(blobs, { recursive: true });
  const unfinished = join(blobs, `${randomUUID()}.incomplete`);
  try {
    await pipeline(Readable.fromWeb(response.body as ReadableStream), createWriteStream(unfinished));
    const hash = createHash('sha256');
    await pipeline(createReadStream(unfinished), hash);
    const digest = hash.digest('hex');
    const etag = (response.headers.get('x-linked-etag') ?? response.headers.get('etag') ?? '').replace(
      /^(W\/)?"?|"$/g,
      '',
    );
    // Large files carry their sha256; others a git hash, which is of another kind.
    if (/^[0-9a-f]{64}$/.test(etag) && etag !== digest) {
      throw new TreewardError('LEARNER_E_HUB', `${file} arrived with another hash than the hub says`, {
        data: { file, expected: etag, got: digest },
      });
    }
    const blob = join(blobs, /^[0-9a-f]{40,64}$/.test(etag) ? etag : digest);
    renameSync(unfinished, blob);
    const link = join(snapshot, file);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(link), blob), link);
  } finally {
    rmSync(unfinished, { force: true });
  }
}
