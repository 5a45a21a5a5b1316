export { loadConfig, parseConfig, type TrainConfig } from './config.js';
export { trainLoop, type StopSignals, type TrainOutcome } from './train-loop.js';
export { Session } from './session.js';
export { JsonlSink, readMetrics, type Metrics, type MetricsSink } from './metrics.js';
export { pairedDifference, type PairedDifference } from './paired.js';
export { summarise, type Summary } from './summary.js';
export { examine, type DoctorReport } from './doctor.js';
