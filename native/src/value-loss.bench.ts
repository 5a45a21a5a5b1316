// As a share of copy bandwidth (20 bytes per token), and beside PyTorch eager.
import { valueLoss } from '@treeward/native';
import { assertClose, copy, noise, row, streamRow, time, type OperatorBench } from './harness.bench.js';
import { valueLossReference } from './testing/value-loss-reference.js';

const options = { clip: 0.2, normaliser: 1000 };
const BYTES = 20;

export const valueLossBench: OperatorBench = async ({ quick, torch }) => {
  const T = quick ? 1_000_000 : 4_000_000;
  const uniform = noise();
  const valuesOld_T = Float32Array.from({ length: T }, () => uniform() - 0.5);
  const input = {
    valuesOld_T,
    values_T: valuesOld_T.map((x) => x + 0.6 * (uniform() - 0.5)),
    targets_T: valuesOld_T.map((x) => x + uniform() - 0.5),
    mask_T: valuesOld_T.map(() => (uniform() < 0.3 ? 1 : 0)),
  };
  const gradValues_T = new Float32Array(T).fill(1);
  const mine = valueLoss(input, options, { gradValues_T });
  assertClose([mine.loss], [valueLossReference(input, options).loss], 1e-6, 'value_loss');
  const peer = await torch?.prepare('torch_peer_losses.value_loss', input, options);
  if (peer) assertClose((await peer.results())['gradValues_T']!, gradValues_T, 1e-6, 'torch value_loss');
  const t = await time(
    {
      copy,
      into: () => valueLoss(input, options, { gradValues_T }),
      fresh: () => valueLoss(input, options),
      ...(peer ? { torch: () => peer.run() } : {}),
    },
    quick,
  );
  await peer?.release();
  const note = { T, bytesPerToken: BYTES, output: 'reused, as in STREAM' };
  const rows = [
    row(`value_loss/T=${T}`, t['fresh']!, { T }),
    streamRow('value_loss/stream_fraction', BYTES * T, t['into']!, t['copy']!, note),
  ];
  if (torch && t['torch']) {
    const config = { T, threads: torch.threads, peer: torch.versions };
    const eager = { against: 'torch eager, the same statistics', p50: t['torch'].p50 };
    rows.push(row('value_loss/vs_torch', t['fresh']!, config, eager));
  }
  return rows;
};
