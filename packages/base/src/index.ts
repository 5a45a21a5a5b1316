export { endWithParent } from './end-with-parent.js';
export {
  TreewardError,
  toPlainError,
  fromPlainError,
  type PlainError,
  type TreewardErrorOptions,
} from './errors.js';
export { randomStream, type Random } from './random.js';
export { writeFileAtomic, writeJsonAtomic, readJson } from './files.js';
export {
  encodeTensors,
  readTensors,
  writeTensors,
  type NamedTensor,
  type TensorData,
  type TensorFile,
} from './arrays.js';
export {
  rpcClient,
  serveRpc,
  type CallOptions,
  type Handlers,
  type RpcClient,
  type RpcServer,
} from './rpc.js';
export { RunFolder, RolloutFolder } from './run-folder.js';
export { WORKER_ARGUMENTS } from './worker-arguments.js';
export { benchMachine, writeBenchRows, type BenchRow } from './bench-file.js';
