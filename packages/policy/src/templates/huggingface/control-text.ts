/** Private-use characters around a placeholder's number. A template treats them as any other character. */
const OPEN = '\uE000';
const CLOSE = '\uE001';
const PLACEHOLDER = /\uE000(\d+)\uE001/g;

/** Template text, or text from outside with every placeholder put back. Only the former may name control tokens. */
export type Rendered = number | string;

/**
 * Keeps text from outside apart from what the template itself writes. Whatever spells a control token (`<|im_end|>`), or could
 * start one that the next text completes, is replaced by a placeholder before the template sees it; the rendered whole is
 * then cut at the control tokens, which are the template's own, and only afterwards are the placeholders put back, as plain text.
 */
export class ControlText {
  readonly #ids: ReadonlyMap<string, number>;
  readonly #spelled: RegExp;
  readonly #own: RegExp;
  readonly #prefixes: ReadonlySet<string>;
  readonly #longest: number;

  constructor(control: ReadonlyMap<string, number>) {
    this.#ids = control;
    const names = [...control.keys()].sort((a, b) => b.length - a.length);
    const alternatives = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|');
    this.#own = new RegExp(`(${alternatives})`);
    this.#spelled = new RegExp(`${alternatives}|${OPEN}|${CLOSE}`, 'g');
    this.#prefixes = new Set(names.flatMap((name) => [...name].map((_, i) => name.slice(0, i))));
    this.#longest = names[0]?.length ?? 0;
  }

  /** A fresh set of placeholders: one per rendering. */
  session(): ControlSession {
    const held: string[] = [];
    const hold = (text: string): string => `${OPEN}${held.push(text) - 1}${CLOSE}`;
    const restore = (text: string): string =>
      text.replace(PLACEHOLDER, (_, n: string) => held[Number(n)] ?? '');
    return {
      hide: (text) => {
        const hidden = text.replace(this.#spelled, hold);
        const start = this.#danglingStart(hidden);
        return start === hidden.length ? hidden : hidden.slice(0, start) + hold(hidden.slice(start));
      },
      cut: (rendered) =>
        rendered
          .split(this.#own)
          .map((piece) => this.#ids.get(piece) ?? restore(piece))
          .filter((piece) => piece !== ''),
    };
  }

  /** Where the longest proper beginning of a control token starts that ends the text; its length if there is none. */
  #danglingStart(text: string): number {
    for (let start = Math.max(0, text.length - this.#longest); start < text.length; start++) {
      if (this.#prefixes.has(text.slice(start))) return start;
    }
    return text.length;
  }
}

export interface ControlSession {
  hide(text: string): string;
  /** Control tokens as ids, everything between them as text. */
  cut(rendered: string): Rendered[];
}
