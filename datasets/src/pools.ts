import type { PoolName } from './types.js';

const words = (text: string): readonly string[] => text.split(' ');

/**
 * The words tasks are made of. No word is in two pools, and none occurs in an instruction, a script or a tool result of a
 * harness (RESERVED_WORDS): otherwise renaming a value would also rename what merely looks like it. Tested.
 */
export const POOLS: Readonly<Record<Exclude<PoolName, 'number'>, readonly string[]>> = {
  name: words(
    'ana ben carla dana emil fay gus hana ivo jun kai lea milo nora otto pia quin rosa sven tara uma vera wes xena yuri zoe',
  ),
  item: words(
    'budget poster desk lamp invoice slides contract chair printer banner parcel ticket camera cable badge ladder kettle carpet helmet basket',
  ),
  verb: words('send ship scan draft paint mend pack weigh rent polish wrap lend carve borrow'),
  city: words('oslo lima cairo quito delhi paris tunis kyoto sofia riga bern dakar hanoi perth milan'),
  day: words('monday tuesday wednesday thursday friday saturday sunday'),
  color: words('red blue green amber violet white black pink teal gray'),
  key: words('port host owner region zone depth speed width theme volume quota shade'),
  stem: words(
    'alpha beta gamma delta omega sigma west east north south memo ledger harbor garden bridge river forest canyon summit meadow',
  ),
  term: words(
    'axon basalt cipher dynamo ember fjord glyph hinge isotope jetty kelp lumen mortar nadir orbit prism quartz rudder sextant tundra',
  ),
  meaning: words(
    'tiny hard dark warm cold rock wave metal sea wind plant wall stone heavy round soft flat steep narrow bright dry',
  ),
};

/** Pools in which 15 % of the values are random syllables, so that copying cannot be done by heart. */
export const OPEN_POOLS: ReadonlySet<PoolName> = new Set<PoolName>(['name', 'item', 'city']);
export const SYLLABLE_SHARE = 0.15;

/**
 * Words of tool names, arguments, shell, file endings and tool results: never a value. The last line holds common words that
 * random syllables happen to spell, and a few nobody wants to read.
 */
export const RESERVED_WORDS: ReadonlySet<string> = new Set(
  words(
    'a about above access action added after again all already an and any are args argument arguments as at available ' +
      'background bash be been before below but by bytes call called can cannot cat cd changed character characters check code ' +
      'command complete completed conf contain content contents cp created csv current cwd data def delete deleted denied dev did ' +
      'directory divide does doing done each echo edit edited edits either elapsed empty end ended entry env error errors exact exactly exec ' +
      'executed exist existing exists exit exited expected extra fail failed false file files first following for found from full ' +
      'get given grep has have here home how id if in input instead invalid is it item json killed kind last least limit line ' +
      'lines list log long make many match matched matches matching may md message missing mode modified more most move multiple ' +
      'must name need new no node none not note null number occurrence occurrences of off offset ok old on once one only open or ' +
      'other out output overwritten page parameter parse parsed part pass patch path paths permission pid please print process ' +
      'prompt provide provided py python ran read reading ready received reminder remove removed replace replaced required result ' +
      'results return returned run running same save saved script see seen session set sh shell should show showing shown signal ' +
      'size sort state status stderr stdin stdout still stop string sub success successful successfully such sum system target team ' +
      'test tests text than that the them then there these this time timed timeout to todo toml tool tools total touch tpl true try ' +
      'txt type unable unchanged unexpected unique unknown up update updated usage use used user using valid value version view ' +
      'was were what when where which will with without word workspace would write writing written wrote yes you your ' +
      'back base current date fake gave give gone keep late like live node rate remote safe side site take tape tune vote wide ' +
      'dago kike nazi pedo rape',
  ),
);
