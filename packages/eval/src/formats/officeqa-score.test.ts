import { describe, expect, it } from 'vitest';
import { finalAnswer, scoreAnswer } from './officeqa-score.js';

describe('scoreAnswer', () => {
  it.each([
    // truth, said, tolerance, score
    ['543 million', 'It was 543 million dollars.', 0, 1],
    ['543 million', '543', 0, 1],
    ['543 million', '543000000', 0, 0],
    ['1,234.5', 'about 1234.5', 0, 1],
    ['100', '101', 0.01, 1],
    ['100', '102', 0.01, 0],
    ['0', 'zero is 0', 0, 1],
    ['-5', '\u22125', 0, 1],
    ['-5', '5', 0, 0],
    ['12%', '12 percent', 0, 1],
    ['42', 'In 2023 it was 42', 0, 1],
    ['42', 'In 2023', 0, 0],
    ['1977', 'the year 1977', 0, 1],
    ['March 1977', 'March 1977', 0, 1],
    ['March 1977', 'April 1977', 0, 0],
    ['March 1977', '1977', 0, 0],
    ['[1, 2, 3]', '3, 2 and 1', 0, 1],
    ['1, 2, 3', '3, 2, 1', 0, 1],
    ['1, 2, 3', '1, 2', 0, 0],
    ['Treasury', 'the Treasury did', 0, 1],
    ['Trust Fund (OASI)', 'trust fund', 0, 1],
    ['Treasury', 'Congress', 0, 0],
    ['Treasury', '', 0, 0],
  ])('%j against %j within %d is %d', (truth, said, tolerance, score) => {
    expect(scoreAnswer(truth, said, tolerance)).toBe(score);
  });

  it('reads the last tagged answer; empty tags do not count', () => {
    expect(finalAnswer('<FINAL_ANSWER>1</FINAL_ANSWER> no: <final_answer> 2 </final_answer>')).toBe('2');
    expect(finalAnswer('<FINAL_ANSWER> </FINAL_ANSWER>')).toBeNull();
    expect(scoreAnswer('7', 'I saw 7 and 8. <FINAL_ANSWER>8</FINAL_ANSWER>')).toBe(0);
  });
});
