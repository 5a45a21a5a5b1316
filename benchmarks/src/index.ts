/** Whole-system scenarios are commands (`src/<scenario>/*-main.ts`); nothing here is imported by other rooms. */
export {};
