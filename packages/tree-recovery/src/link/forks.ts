import type { Evidence } from '../evidence.js';
import { overlap, type LinkCall, type LinkEdge } from './link-call.js';

/**
 * Second pass: what it means that several calls stand at one place. Needs all attachments, because a branch is
 * abandoned only if nothing of it comes later.
 */
export class ForkResolver {
  readonly #calls: readonly LinkCall[];
  /** Calls that attach to each one, in causal order. */
  readonly #children: readonly (readonly number[])[];
  /** Last call of the same agent of all that grew out of each one. */
  readonly #last: Int32Array;

  constructor(calls: readonly LinkCall[]) {
    this.#calls = calls;
    const children: number[][] = calls.map(() => []);
    for (const { at, attachment } of calls) if ('of' in attachment) children[attachment.of]!.push(at);
    this.#children = children;
    this.#last = new Int32Array(calls.length);
    for (let at = calls.length - 1; at >= 0; at--) {
      // An agent that was started may outlive the branch that started it.
      const own = children[at]!.filter((child) => calls[child]!.attachment.kind !== 'spawned');
      this.#last[at] = own.reduce((last, child) => Math.max(last, this.#last[child]!), at);
    }
  }

  edges(): LinkEdge[] {
    const out: LinkEdge[] = [];
    for (const call of this.#calls) {
      if (call.attachment.kind === 'repeats') out.push(this.#repeat(call, call.attachment));
    }
    this.#children.forEach((children, at) => {
      const turns = children.filter((child) => this.#calls[child]!.attachment.kind === 'extends');
      if (turns.length === 1) out.push(this.#extend(this.#calls[turns[0]!]!, at));
      else if (turns.length > 1) out.push(...this.#fork(at, turns));
    });
    return out;
  }

  /** Do two turns overlap, each from its first attempt to the end of the one that was taken? */
  turnsOverlap(a: number, b: number): boolean {
    return this.#calls[a]!.start < this.#turnEnd(b) && this.#calls[b]!.start < this.#turnEnd(a);
  }

  #turnEnd(at: number): number {
    let end = -Infinity;
    for (let attempt = at; ;) {
      const call = this.#calls[attempt]!;
      // Of two draws that were asked for at once both are waited for.
      if (call.delivered) end = Math.max(end, call.finish);
      const next = this.#children[attempt]!.findLast(
        (child) => this.#calls[child]!.attachment.kind === 'repeats',
      );
      if (next === undefined || this.#isExtended(attempt)) return Math.max(end, call.finish);
      attempt = next;
    }
  }

  /** Was the reply of that very call taken up, not that of a repetition? */
  #isExtended(at: number): boolean {
    return this.#children[at]!.some((child) => this.#calls[child]!.attachment.kind !== 'repeats');
  }

  /** Last call of what grew out of the reply of `at`, repetitions of it left aside. */
  #lastOfBranch(at: number): number {
    const own = this.#children[at]!.filter((child) => {
      const { kind } = this.#calls[child]!.attachment;
      return kind !== 'repeats' && kind !== 'spawned';
    });
    return own.reduce((last, child) => Math.max(last, this.#last[child]!), at);
  }

  #repeat(call: LinkCall, { of, evidence: same }: { of: number; evidence: readonly Evidence[] }): LinkEdge {
    const earlier = this.#calls[of]!;
    const edge = (type: LinkEdge['type'], ...why: Evidence[]): LinkEdge => ({
      from: of,
      to: call.at,
      type,
      evidence: [...same, ...why],
    });
    const extended = this.#isExtended(of);
    const during: Evidence[] = overlap(earlier, call) ? ['overlap'] : [];
    if (!earlier.sampled && earlier.entry.end && earlier.entry.end.status >= 400)
      return edge('retry', 'refused');
    if (!extended && (!earlier.delivered || !earlier.sampled)) return edge('retry', 'undelivered', ...during);
    if (earlier.malformed && !extended) return edge('retry', 'malformed', ...during);
    if (during.length > 0) return edge('ambiguous', ...during);
    if (!extended) return edge('retry', 'unextended');
    const last = this.#lastOfBranch(of);
    // The history was cut back to this turn and the turn sampled again.
    if (last < call.at) return { ...edge('rollback', 'extended', 'abandoned'), from: last };
    return edge('ambiguous', 'extended', 'interleaved');
  }

  #extend(call: LinkCall, from: number): LinkEdge {
    const { attachment } = call;
    return {
      from,
      to: call.at,
      type: 'continue',
      evidence: attachment.kind === 'extends' ? attachment.evidence : [],
    };
  }

  /** Several turns behind one reply. The first goes on; each other runs beside an earlier one or comes after it was left. */
  #fork(at: number, turns: readonly number[]): LinkEdge[] {
    const out: LinkEdge[] = [this.#extend(this.#calls[turns[0]!]!, at)];
    // A summary that was asked for beside the work is no branch of it.
    const branches = this.#calls[turns[0]!]!.role === 'compaction' ? [] : [turns[0]!];
    for (const turn of turns.slice(1)) {
      const call = this.#calls[turn]!;
      if (call.role === 'compaction' || branches.length === 0) {
        out.push(this.#extend(call, at));
        if (call.role !== 'compaction') branches.push(turn);
        continue;
      }
      const beside = branches.find((earlier) => this.turnsOverlap(earlier, turn));
      if (beside !== undefined) {
        const both = this.#isExtended(beside) && this.#isExtended(turn);
        const evidence: Evidence[] = ['overlap', both ? 'extended' : 'unextended'];
        out.push(this.#extend(call, at), { from: beside, to: turn, type: 'parallel', evidence });
      } else if (branches.some((earlier) => this.#last[earlier]! > turn)) {
        // An earlier branch goes on later: the history was forked, not cut back.
        out.push(this.#extend(call, at));
      } else {
        const last = branches.reduce((latest, earlier) => Math.max(latest, this.#last[earlier]!), -1);
        out.push({ from: last, to: turn, type: 'rollback', evidence: ['inside', 'abandoned'] });
      }
      branches.push(turn);
    }
    return out;
  }
}
